package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// worker is a running `daybook run`.
type worker struct {
	cmd  *exec.Cmd
	done chan error
	log  string
}

// command returns the binary with arguments, as a user would call it.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "SHOP_DB_PASSWORD=repl")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start runs the pipeline until it is stopped or killed.
func (s *stage) start(ctx context.Context) error {
	say("$ daybook run shop.yaml")
	w := &worker{cmd: s.command(ctx, "run", s.file), done: make(chan error, 1), log: filepath.Join(s.dir, "daybook.log")}
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	w.cmd.Stderr = log
	if err := w.cmd.Start(); err != nil {
		return err
	}
	go func() { w.done <- w.cmd.Wait() }()
	s.worker = w
	return nil
}

// running returns an error with the end of the log where the worker has ended.
func (w *worker) running() error {
	select {
	case err := <-w.done:
		w.done <- err
		log, _ := os.ReadFile(w.log)
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		return fmt.Errorf("daybook ended (%v):\n%s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	default:
		return nil
	}
}

// kill ends it as a crash would.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	err := <-w.done
	w.done <- err
}

// stop asks it to end and waits.
func (w *worker) stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-w.done
	w.done <- err
	return err
}

// once runs a verb to its end, with its output shown.
func (s *stage) once(ctx context.Context, args ...string) error {
	shown := make([]string, len(args))
	for i, a := range args {
		shown[i] = strings.ReplaceAll(a, s.dir+"/", "")
	}
	say("$ daybook %s", strings.Join(shown, " "))
	out, err := s.command(ctx, append(args, "--log-level", "warn")...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		fmt.Print("     ", line)
	}
	return err
}
