package services

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// manifestName is the file that makes an installation complete. It holds a line
// "size path" for every regular file, and its own number of lines at the end: a
// file cut short by a full disk or a power cut, or taken away by a cleaner of
// temporary files, is noticed.
const manifestName = "MANIFEST"

func writeManifest(dir string) error {
	var b bytes.Buffer
	lines := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		lines++
		_, err = fmt.Fprintf(&b, "%d %s\n", info.Size(), name)
		return err
	})
	if err != nil {
		return fmt.Errorf("listing the installed files: %w", err)
	}
	fmt.Fprintf(&b, "%d files\n", lines)
	return os.WriteFile(filepath.Join(dir, manifestName), b.Bytes(), 0o644)
}

// checkManifest returns nil if the directory holds all that its manifest lists.
func checkManifest(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	last := len(lines) - 1
	if lines[last] != fmt.Sprintf("%d files", last) {
		return fmt.Errorf("the manifest of %s is cut short", dir)
	}
	for _, line := range lines[:last] {
		size, name, _ := strings.Cut(line, " ")
		want, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return fmt.Errorf("the manifest of %s: %w", dir, err)
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if info.Size() != want {
			return fmt.Errorf("%s has %d bytes, not %d", filepath.Join(dir, name), info.Size(), want)
		}
	}
	return nil
}
