package services

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// NATS is a running NATS server of one with JetStream. What it has acknowledged
// survives a kill; what a power cut leaves depends on sync_interval.
type NATS struct {
	*Server
}

// natsModule is what the server is built from.
const natsModule = "github.com/nats-io/nats-server/v2@v2.15.2"

// installNATS builds the server with the Go tools.
func installNATS(ctx context.Context, c cache) (string, error) {
	return c.install(ctx, recipe{name: "nats", inputs: "1 " + natsModule, build: func(ctx context.Context, dir string) error {
		if _, err := exec.LookPath("go"); err != nil {
			return &Unavailable{Service: "nats", Missing: "go", Package: "golang-go", Err: err}
		}
		cmd := exec.CommandContext(ctx, "go", "install", natsModule)
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=")
		cmd.Dir = dir // in no module
		return runQuiet(cmd)
	}})
}

// StartNATS builds a NATS server 2.15 if needed, which takes the Go tools, and
// starts it. Options.Args are lines of its jetstream block, such as
// "sync_interval: always".
func StartNATS(ctx context.Context, o Options) (*NATS, error) {
	if o.Variant != "" {
		return nil, fmt.Errorf("nats has no variant %q", o.Variant)
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	install, err := installNATS(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, c, "nats", o)
	if err != nil {
		return nil, err
	}
	n := &NATS{Server: s}
	err = n.open(ctx, launch{
		name: "nats",
		command: func(context.Context) (*exec.Cmd, error) {
			file := filepath.Join(s.Dir, "nats.conf")
			if err := os.WriteFile(file, []byte(n.settings(o.Args)), 0o644); err != nil {
				return nil, err
			}
			return exec.Command(filepath.Join(install, "nats-server"), "-c", file), nil
		},
		ready: n.ping,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (n *NATS) settings(more []string) string {
	return fmt.Sprintf("listen: %q\nmax_payload: 8MB\njetstream {\n  store_dir: %q\n  max_file_store: 1TB\n  %s\n}\n",
		n.Addr, filepath.Join(n.Dir, "store"), strings.Join(more, "\n  "))
}

// ping reads the line with which the server greets; JetStream is up when it is in it.
func (n *NATS) ping(ctx context.Context) error {
	info, err := firstLine(ctx, n.Addr, "")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(info, "INFO ") || !strings.Contains(info, `"jetstream":true`) {
		return fmt.Errorf("nats greets with %q", info)
	}
	return nil
}
