package services

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// cacheEnv names the environment variable that holds the cache directory.
const cacheEnv = "DAYBOOK_SERVICES"

// cache is the directory that holds all installations. Its methods are safe for
// concurrent use, by several processes too.
type cache struct {
	dir string // absolute
}

// openCache returns the cache that the environment names, creating it if needed.
func openCache() (cache, error) {
	dir := os.Getenv(cacheEnv)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return cache{}, fmt.Errorf("finding a place for the servers (set %s to a directory): %w", cacheEnv, err)
		}
		dir = filepath.Join(user, "daybook", "services")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return cache{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cache{}, fmt.Errorf("creating the directory for the servers (set %s to another one): %w", cacheEnv, err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	return cache{dir: dir}, err
}

// recipe says how an installation is made.
type recipe struct {
	name string // such as "mysql"
	// inputs is all that the result depends on, as text: an installation made
	// of other inputs is another one.
	inputs string
	// build fills the empty directory. The result must not hold the directory's
	// path, which changes when the build is done.
	build func(ctx context.Context, dir string) error
}

// install returns the directory of the installation, building it first if it is
// not there or is damaged. Others who want it meanwhile wait.
func (c cache) install(ctx context.Context, r recipe) (string, error) {
	sum := sha256.Sum256([]byte(r.inputs))
	dir := filepath.Join(c.dir, fmt.Sprintf("%s-%x", r.name, sum[:4]))
	if checkManifest(dir) == nil {
		return dir, nil
	}
	lock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if checkManifest(dir) == nil { // built by another while we waited
		return dir, nil
	}
	if err := c.build(ctx, r, dir); err != nil {
		return "", fmt.Errorf("installing %s in %s: %w", r.name, c.dir, err)
	}
	return dir, nil
}

// build makes the installation beside its place and moves it there. The caller
// holds the lock.
func (c cache) build(ctx context.Context, r recipe, dir string) (err error) {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil { // left by a killed builder
		return err
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err := r.build(ctx, part); err != nil {
		return err
	}
	if err := writeManifest(part); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // damaged
		return err
	}
	return os.Rename(part, dir)
}
