package node_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/daybook-data/daybook/internal/shop"
)

// binaryPath is the command, built once for all tests of the package.
var binaryPath string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "daybook-node-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binaryPath, err = shop.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
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
