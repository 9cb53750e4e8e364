package services

import (
	"archive/zip"
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

// jdkPackage is the Debian package of one; of release 17 or later since Debian 12.
const jdkPackage = "default-jdk-headless"

// javaServer is an installation made of Maven artifacts and files of ours.
type javaServer struct {
	name string // of the service, and of its folder in javaFiles
	// finish lays out dir, where jars/ holds all jars and src/ our own files.
	finish func(ctx context.Context, j jdk, dir string) error
	// train runs the finished server once, with the given option for its JVM.
	train func(ctx context.Context, c cache, dir, option string) error
	// layout is raised when finish or the class path changes.
	layout string
}

// classArchive is a file that a server's JVM maps instead of reading and checking
// thousands of classes, which halves the CPU time of a start (Elasticsearch: 2.7
// s for 4.8 s). The JVM writes it at the end of a first run.
const classArchive = "classes.jsa"

// install returns the installation's directory.
func (s javaServer) install(ctx context.Context, c cache) (string, error) {
	if _, err := exec.LookPath(findJava().program("java")); err != nil {
		return "", &Unavailable{Service: s.name, Missing: "java", Package: jdkPackage, Err: err}
	}
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
		return s.build(ctx, c, source, dir)
	}})
	var missing *Unavailable
	if errors.As(err, &missing) {
		missing.Service = s.name
	}
	return dir, err
}

func (s javaServer) build(ctx context.Context, c cache, source fs.FS, dir string) error {
	j, err := findJDK(ctx)
	if err != nil {
		return err
	}
	src := filepath.Join(dir, "src")
	if err := os.CopyFS(src, source); err != nil {
		return err
	}
	mvn := exec.CommandContext(ctx, "mvn", "-B", "-q", "-Dstyle.color=never", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, "jars"))
	mvn.Dir = src
	if err := runQuiet(mvn); err != nil {
		return fmt.Errorf("resolving the jars: %w", err)
	}
	if s.finish != nil {
		if err := s.finish(ctx, j, dir); err != nil {
			return err
		}
	}
	if err := s.train(ctx, c, dir, "-XX:ArchiveClassesAtExit="+filepath.Join(dir, classArchive)); err != nil {
		return fmt.Errorf("running it for the first time: %w", err)
	}
	return nil
}

// javaCommand returns a command that runs an installation: options, a class and
// its arguments. The class path is relative, since the JVM takes a class archive
// only for the very path that it was made with, and an installation is moved.
func javaCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	jars, err := filepath.Glob(filepath.Join(dir, "jars", "*.jar"))
	if err != nil {
		return nil, err
	}
	for i := range jars {
		jars[i] = filepath.Join("jars", filepath.Base(jars[i]))
	}
	args = append([]string{"-cp", strings.Join(jars, ":")}, args...)
	if _, err := os.Stat(filepath.Join(dir, classArchive)); err == nil {
		args = append([]string{"-XX:SharedArchiveFile=" + classArchive}, args...)
	}
	cmd := exec.CommandContext(ctx, findJava().program("java"), args...)
	cmd.Dir = dir
	return cmd, nil
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
		return jdk{}, &Unavailable{Missing: "javac", Package: jdkPackage, Err: err}
	}
	m := javacVersion.FindSubmatch(out)
	if m == nil {
		return jdk{}, fmt.Errorf("javac -version says %q", out)
	}
	if v, err := strconv.Atoi(string(m[1])); err != nil || v < jdkRelease {
		return jdk{}, &Unavailable{Missing: fmt.Sprintf("a JDK of version %d (javac is of %s)", jdkRelease, m[1]),
			Package: jdkPackage}
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

// compile turns sources into a jar.
func (j jdk) compile(ctx context.Context, jar, classPath string, sources ...string) (err error) {
	out, err := os.MkdirTemp(filepath.Dir(jar), "classes")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	args := append([]string{"--release", strconv.Itoa(jdkRelease), "-proc:none", "-Xlint:-options", "-d", out, "-cp", classPath}, sources...)
	if err := runQuiet(exec.CommandContext(ctx, j.program("javac"), args...)); err != nil {
		return fmt.Errorf("compiling %s: %w", strings.Join(sources, " "), err)
	}
	f, err := os.Create(jar)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	return errors.Join(w.AddFS(os.DirFS(out)), w.Close(), f.Close())
}
