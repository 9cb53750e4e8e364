package shop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the daybook binary into dir, as the Makefile does, and returns its path.
func Build(dir string) (string, error) {
	path := filepath.Join(dir, "daybook")
	cmd := exec.Command("go", "build", "-o", path, "github.com/daybook-data/daybook/cmd/daybook")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return path, nil
}
