package services

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// javaFiles are the sources, settings and lists of jars of the Java servers.
//
//go:embed java
var javaFiles embed.FS

// jdkRelease is the oldest Java that the servers run on.
const jdkRelease = 17

// javaServer is an installation made of Maven artifacts and files of ours.
type javaServer struct {
	name string // of the service, and of its folder in javaFiles
	// finish lays out dir, where jars/ holds all jars and src/ our own files.
	finish func(ctx context.Context, j jdk, dir string) error
	// layout is raised when finish changes.
	layout string
}

// install returns the installation's directory.
func (s javaServer) install(ctx context.Context, c cache) (string, error) {
	source, err := fs.Sub(javaFiles, "java/"+s.name)
	if err != nil {
		return "", err
	}
	inputs := s.layout
	err = fs.WalkDir(source, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(source, path)
		inputs += "\n" + path + "\n" + string(text)
		return err
	})
	if err != nil {
		return "", err
	}
	dir, err := c.install(ctx, recipe{name: s.name, inputs: inputs, build: func(ctx context.Context, dir string) error {
		return s.build(ctx, source, dir)
	}})
	var missing *Unavailable
	if errors.As(err, &missing) {
		missing.Service = s.name
	}
	return dir, err
}

func (s javaServer) build(ctx context.Context, source fs.FS, dir string) error {
	j, err := findJDK(ctx)
	if err != nil {
		return err
	}
	src := filepath.Join(dir, "src")
	if err := os.CopyFS(src, source); err != nil {
		return err
	}
	mvn := exec.CommandContext(ctx, "mvn", "-B", "-q", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "jars"))
	mvn.Dir = src
	if err := runQuiet(mvn); err != nil {
		return fmt.Errorf("resolving the jars: %w", err)
	}
	return s.finish(ctx, j, dir)
}

// jdk is the Java development kit of this machine.
type jdk struct {
	bin string // directory of the programs; empty: they are found by PATH
}

var javacVersion = regexp.MustCompile(`javac (\d+)`)

// findJDK returns the kit that JAVA_HOME or PATH name, if Maven is there too.
func findJDK(ctx context.Context) (jdk, error) {
	j := findJava()
	out, err := exec.CommandContext(ctx, j.program("javac"), "-version").CombinedOutput()
	if err != nil {
		return jdk{}, &Unavailable{Missing: "javac", Package: "default-jdk-headless", Err: err}
	}
	m := javacVersion.FindSubmatch(out)
	if m == nil {
		return jdk{}, fmt.Errorf("javac -version says %q", out)
	}
	if v, err := strconv.Atoi(string(m[1])); err != nil || v < jdkRelease {
		return jdk{}, &Unavailable{Missing: fmt.Sprintf("a JDK of version %d (javac is of %s)", jdkRelease, m[1]),
			Package: "openjdk-17-jdk-headless"}
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return jdk{}, &Unavailable{Missing: "mvn", Package: "maven", Err: err}
	}
	return j, nil
}

// findJava returns where Java's programs are looked for.
func findJava() jdk {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return jdk{bin: filepath.Join(home, "bin")}
	}
	return jdk{}
}

// program returns the path of one of Java's programs.
func (j jdk) program(name string) string {
	if j.bin == "" {
		return name
	}
	return filepath.Join(j.bin, name)
}

// compile turns sources into class files below out.
func (j jdk) compile(ctx context.Context, out, classPath string, sources ...string) error {
	args := append([]string{"--release", strconv.Itoa(jdkRelease), "-proc:none", "-Xlint:-options", "-d", out, "-cp", classPath}, sources...)
	if err := runQuiet(exec.CommandContext(ctx, j.program("javac"), args...)); err != nil {
		return fmt.Errorf("compiling %s: %w", strings.Join(sources, " "), err)
	}
	return nil
}
