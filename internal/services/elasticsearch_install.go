package services

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The HTTP transport is a module: it has a folder and a class loader of its own.
const httpModule = "transport-netty4"

func elasticsearchServer() javaServer {
	return javaServer{name: "elasticsearch", layout: "2", finish: layOutElasticsearch, train: trainElasticsearch}
}

func trainElasticsearch(ctx context.Context, c cache, dir, option string) error {
	e, err := startElasticsearch(ctx, c, dir, Options{}, option)
	if err != nil {
		return err
	}
	return errors.Join(e.stopWithin(trainPatience), e.Close())
}

// layOutElasticsearch makes what a distribution has:
//
//	jars/                              the server, and TestNode, which starts it
//	home/modules/transport-netty4/     HTTP
//	home/plugins/stand-ins/            our answers in place of unpublished modules
//	home/config/
func layOutElasticsearch(ctx context.Context, j jdk, dir string) error {
	src, jars, home := filepath.Join(dir, "src"), filepath.Join(dir, "jars"), filepath.Join(dir, "home")
	module, plugin := filepath.Join(home, "modules", httpModule), filepath.Join(home, "plugins", "stand-ins")
	for _, d := range []string{module, plugin, filepath.Join(home, "config")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, pattern := range []string{"netty-*.jar", httpModule + "-*.jar"} {
		if err := moveAll(filepath.Join(jars, pattern), module); err != nil {
			return err
		}
	}
	if err := moveAll(filepath.Join(src, "log4j2.properties"), filepath.Join(home, "config")); err != nil {
		return err
	}
	descriptor, err := publishedDescriptor(module)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "plugin-descriptor.properties"), []byte(descriptor), 0o644); err != nil {
		return err
	}
	return compileOurs(ctx, j, dir, plugin, descriptor)
}

var (
	moduleName = regexp.MustCompile(`(?m)^modulename=.*\n?`)
	esVersion  = regexp.MustCompile(`(?m)^elasticsearch\.version=(.+)$`)
)

// publishedDescriptor returns the description that the module's jar carries,
// less the name of its Java module: that one would ask for a server that is a
// named module, and here it is on the class path.
func publishedDescriptor(module string) (string, error) {
	found, err := filepath.Glob(filepath.Join(module, httpModule+"-*.jar"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("looking for the one jar of %s: found %v, %w", httpModule, found, err)
	}
	jar, err := zip.OpenReader(found[0])
	if err != nil {
		return "", err
	}
	defer jar.Close()
	f, err := jar.Open("META-INF/es-plugins/" + httpModule + "/plugin-descriptor.properties")
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	return moduleName.ReplaceAllString(string(text), ""), nil
}

// compileOurs compiles the launcher, and our plugin for the version that the
// module is of.
func compileOurs(ctx context.Context, j jdk, dir, plugin, descriptor string) error {
	src, jars := filepath.Join(dir, "src"), filepath.Join(dir, "jars")
	classPath := filepath.Join(jars, "*")
	if err := j.compile(ctx, filepath.Join(jars, "test-node.jar"), classPath, filepath.Join(src, "TestNode.java")); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(src, "standins", "*.java"))
	if err != nil {
		return err
	}
	if err := j.compile(ctx, filepath.Join(plugin, "stand-ins.jar"), classPath, sources...); err != nil {
		return err
	}
	version := esVersion.FindStringSubmatch(descriptor)
	if version == nil {
		return fmt.Errorf("the descriptor of %s names no version of Elasticsearch", httpModule)
	}
	text := strings.Join([]string{
		"name=stand-ins", "description=answers in place of modules that are not published",
		"classname=standins.StandIns", fmt.Sprintf("java.version=%d", jdkRelease),
		"version=" + version[1], "elasticsearch.version=" + version[1], "",
	}, "\n")
	return os.WriteFile(filepath.Join(plugin, "plugin-descriptor.properties"), []byte(text), 0o644)
}

// moveAll moves the files of the pattern, of which there must be one at least,
// into the directory.
func moveAll(pattern, dir string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("nothing matches %s", pattern)
	}
	for _, f := range files {
		if err := os.Rename(f, filepath.Join(dir, filepath.Base(f))); err != nil {
			return err
		}
	}
	return nil
}
