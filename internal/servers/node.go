package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// readyPatience bounds the wait for a node that has no deadline.
	readyPatience = time.Minute
	// stopPatience is how long a node may take to end after it was asked to.
	stopPatience = time.Minute
)

// Node is one of the servers. Its methods are not called concurrently.
type Node struct {
	ID                int
	Dir               string // its data is below
	Kafka, HTTP, Peer string // where it listens
	Join              string // the Peer of another one; empty for the first

	binary string
	args   []string
	config func(*Node) string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended; err is set before
	err  error
}

// Data is the folder of its journals.
func (n *Node) Data() string { return filepath.Join(n.Dir, "data") }

// Log is the file with what it has said.
func (n *Node) Log() string { return filepath.Join(n.Dir, "log") }

// PID is that of its process, or of the last one.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// command returns what is run.
func (n *Node) command() (*exec.Cmd, error) {
	if n.config != nil {
		file := filepath.Join(n.Dir, "server.yaml")
		err := os.WriteFile(file, []byte(n.config(n)), 0o600)
		return exec.Command(n.binary, append([]string{"server", "--config", file}, n.args...)...), err
	}
	args := []string{"server", "--data", n.Data(), "--kafka", n.Kafka, "--http", n.HTTP, "--cluster", n.Peer}
	if n.Join != "" {
		args = append(args, "--join", n.Join)
	}
	return exec.Command(n.binary, append(args, n.args...)...), nil
}

// Start starts the process, which dies with this one.
func (n *Node) Start() error {
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return err
	}
	cmd, err := n.command()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has a descriptor of its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.cmd, n.done = cmd, make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that started the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			n.err = cmd.Wait()
		}
		close(n.done)
	}()
	return <-started
}

// Running returns nil while the process runs, else how it ended.
func (n *Node) Running() error {
	if n.done == nil {
		return fmt.Errorf("node %d was never started", n.ID)
	}
	select {
	case <-n.done:
		return fmt.Errorf("node %d ended (%v):\n%s", n.ID, n.err, n.LogTail())
	default:
		return nil
	}
}

// AwaitReady waits until the node says that it is ready.
func (n *Node) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for {
		err := n.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.done:
			return n.Running()
		case <-ctx.Done():
			return fmt.Errorf("node %d does not get ready: %w\n%s", n.ID, err, n.LogTail())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Ready asks the node whether it is ready, once.
func (n *Node) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/ready", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // the status says enough without it
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(why))
	}
	return nil
}

// Kill ends the process without a warning.
func (n *Node) Kill() error {
	if n.Running() != nil {
		return nil
	}
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-n.done
	return nil
}

// Pause makes the node silent: its connections stay open, and nothing answers.
func (n *Node) Pause() error { return n.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a pause.
func (n *Node) Resume() error { return n.cmd.Process.Signal(syscall.SIGCONT) }

// Stop asks the process to end. One that has ended before, be it killed, is no error.
func (n *Node) Stop() error {
	if n.Running() != nil {
		return nil
	}
	if err := errors.Join(n.cmd.Process.Signal(syscall.SIGTERM), n.Resume()); err != nil && !errors.Is(err, os.ErrProcessDone) { // it may end between the two
		return err
	}
	select {
	case <-n.done:
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("node %d does not end when it is asked to:\n%s", n.ID, n.LogTail()), n.Kill())
	}
	if n.err != nil {
		return n.Running()
	}
	return nil
}

// LogTail returns the last lines of the log.
func (n *Node) LogTail() string {
	text, err := os.ReadFile(n.Log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
