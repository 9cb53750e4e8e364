package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/internal/shop"
)

// binary builds the command once for all tests of the package, as the Makefile does.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "daybook-node-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "daybook")
	cmd := exec.Command("go", "build", "-o", path, "../../cmd/daybook")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func buildBinary(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("building the binary: %v", err)
	}
	return path
}

func openShop(t *testing.T, o shop.Options) *shop.Shop {
	t.Helper()
	s, err := shop.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("opening the shop: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the shop: %v", err)
		}
	})
	return s
}
