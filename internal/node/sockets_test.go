package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketWorksInAFolderWithALongPathAndAfterACrash(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := dialSocket(t.Context(), dir, adminSocket); ok || err != nil {
		t.Fatalf("before anybody listens: ok %v, error %v; want neither", ok, err)
	}
	left, err := listenSocket(dir, adminSocket)
	if err != nil {
		t.Fatal(err)
	}
	// As a killed process leaves it: the file is there, nobody listens.
	if err := left.(*socketListener).Listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := dialSocket(t.Context(), dir, adminSocket); ok || err != nil {
		t.Fatalf("socket of a dead process: ok %v, error %v; want neither", ok, err)
	}
	l, err := listenSocket(dir, adminSocket)
	if err != nil {
		t.Fatalf("listening where a dead process left its socket: %v", err)
	}
	conn, ok, err := dialSocket(t.Context(), dir, adminSocket)
	if !ok || err != nil {
		t.Fatalf("dialing a live socket: ok %v, error %v", ok, err)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, adminSocket)); !os.IsNotExist(err) {
		t.Errorf("the socket's file is still there after Close: %v", err)
	}
}
