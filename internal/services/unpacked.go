package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debian is an installation made of the packages of a Debian release.
type debian struct {
	name     string   // of the service
	suite    string   // of Debian
	packages []string // with all they depend on
	alone    []string // without
	// finish does what is left after unpacking; nil if nothing is. Programs can
	// be run from u already.
	finish func(ctx context.Context, u unpacked) error
	// finishInputs is all that finish depends on.
	finishInputs string
}

// unpacked is a directory of unpacked packages: a root file system without the
// host's loader and libraries, whose programs need theirs to be named.
type unpacked struct {
	dir string // the root is in dir/root
}

// install returns the unpacked packages.
func (d debian) install(ctx context.Context, c cache) (unpacked, error) {
	dir, err := c.install(ctx, recipe{
		name: d.name,
		inputs: strings.Join([]string{"unpacked 2", d.suite, strings.Join(d.packages, " "),
			strings.Join(d.alone, " "), d.finishInputs}, "\n"),
		build: func(ctx context.Context, dir string) error { return d.build(ctx, c, dir) },
	})
	var missing *Unavailable
	if errors.As(err, &missing) {
		missing.Service = d.name
	}
	return unpacked{dir: dir}, err
}

func (d debian) build(ctx context.Context, c cache, dir string) error {
	u := unpacked{dir: dir}
	if err := os.Mkdir(u.path(), 0o755); err != nil {
		return err
	}
	if err := d.fetch(ctx, c, u); err != nil {
		return err
	}
	for _, waste := range []string{"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/icu"} {
		if err := os.RemoveAll(u.path(waste)); err != nil {
			return err
		}
	}
	if err := u.dropSetuid(); err != nil {
		return err
	}
	if err := u.writeLoader(); err != nil {
		return err
	}
	if d.finish == nil {
		return nil
	}
	return d.finish(ctx, u)
}

// fetch downloads and unpacks under the lock of the release's apt: its archive
// directory belongs to one download at a time.
func (d debian) fetch(ctx context.Context, c cache, u unpacked) error {
	dir := filepath.Join(c.dir, "apt", d.suite)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := lockFile(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	a, err := openApt(ctx, dir, d.suite)
	if err != nil {
		return err
	}
	files, err := a.download(ctx, d.packages, d.alone)
	if err != nil {
		return err
	}
	for _, file := range files {
		if name, _, _ := strings.Cut(filepath.Base(file), "_"); onlyForMaintainerScripts(name) {
			continue
		}
		if err := runQuiet(exec.CommandContext(ctx, "dpkg-deb", "-x", file, u.path())); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(file), err)
		}
	}
	return removeDebs(filepath.Join(dir, "cache", "archives"))
}

// onlyForMaintainerScripts says whether the package serves the installation of
// others only, whose scripts don't run here.
func onlyForMaintainerScripts(name string) bool {
	switch name {
	case "adduser", "debconf", "dpkg", "init-system-helpers", "lsb-base", "passwd", "sysvinit-utils", "tar", "ucf":
		return true
	}
	return strings.HasPrefix(name, "perl") || strings.HasPrefix(name, "libperl")
}

// path returns a path below the root.
func (u unpacked) path(elem ...string) string {
	return filepath.Join(append([]string{u.dir, "root"}, elem...)...)
}

// first returns the first of the paths below the root that exists, or the last.
func (u unpacked) first(paths ...string) string {
	for _, p := range paths {
		if _, err := os.Stat(u.path(p)); err == nil {
			return u.path(p)
		}
	}
	return u.path(paths[len(paths)-1])
}

// dropSetuid takes the setuid and setgid bits off all files: nothing here needs
// them, and programs that have them don't belong into a cache.
func (u unpacked) dropSetuid() error {
	return filepath.WalkDir(u.path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
			return err
		}
		return os.Chmod(path, info.Mode().Perm())
	})
}

// writeLoader finds the dynamic loader and the library directories and notes
// them in dir/loader, a relative path a line, the loader first.
func (u unpacked) writeLoader() error {
	var loader string
	var libs []string
	for _, top := range []string{"lib", "usr/lib", "lib64", "usr/lib64"} {
		err := filepath.WalkDir(u.path(top), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			name := e.Name()
			if e.IsDir() && (strings.HasPrefix(name, "plugin") || name == "gconv" || name == "ossl-modules" ||
				strings.HasPrefix(name, "engines-") || name == "modules") {
				return fs.SkipDir // loaded by path, not by name
			}
			if !strings.Contains(name, ".so") {
				return nil
			}
			rel, err := filepath.Rel(u.path(), path)
			if err != nil {
				return err
			}
			// The link beside it may lead to the host's loader.
			if strings.HasPrefix(name, "ld-linux") && e.Type().IsRegular() {
				loader = rel
			}
			if dir := filepath.Dir(rel); !slices.Contains(libs, dir) {
				libs = append(libs, dir)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if loader == "" {
		return errors.New("no dynamic loader in the unpacked packages")
	}
	text := strings.Join(append([]string{loader}, libs...), "\n")
	return os.WriteFile(filepath.Join(u.dir, "loader"), []byte(text), 0o644)
}

// command returns a command that runs a program of the packages (a path below
// the root) with their own loader and libraries.
func (u unpacked) command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	text, err := os.ReadFile(filepath.Join(u.dir, "loader"))
	if err != nil {
		return nil, err
	}
	paths := strings.Split(string(text), "\n")
	for i := range paths {
		paths[i] = u.path(paths[i])
	}
	program = u.path(program)
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	args = append([]string{"--library-path", strings.Join(paths[1:], ":"), "--argv0", program, program}, args...)
	return exec.CommandContext(ctx, paths[0], args...), nil
}
