package shop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Binary is the daybook binary, run in a folder as a user would run it.
type Binary struct {
	Path string
	Dir  string
}

func (b Binary) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.Path, args...)
	cmd.Dir = b.Dir
	cmd.Env = append(os.Environ(), "SHOP_DB_PASSWORD=repl")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Once runs a verb to its end and returns all it printed.
func (b Binary) Once(ctx context.Context, args ...string) (string, error) {
	out, err := b.command(ctx, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("daybook %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	return string(out), err
}

// Worker is a running `daybook run`.
type Worker struct {
	PID  int
	cmd  *exec.Cmd
	done chan error // holds the outcome once the process has ended
	log  string
}

// Run starts the pipeline of a file; it runs until it is stopped or killed. Its log is
// appended to daybook.log in the binary's folder.
func (b Binary) Run(file string, args ...string) (*Worker, error) {
	w := &Worker{done: make(chan error, 1), log: filepath.Join(b.Dir, "daybook.log")}
	w.cmd = b.command(context.Background(), append([]string{"run", file}, args...)...)
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has a descriptor of its own
	w.cmd.Stdout, w.cmd.Stderr = log, log
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.PID = w.cmd.Process.Pid
	go func() { w.done <- w.cmd.Wait() }()
	return w, nil
}

// Running returns nil while the worker runs, else an error with the end of its log.
func (w *Worker) Running() error {
	select {
	case err := <-w.done:
		w.done <- err
		return fmt.Errorf("daybook ended (%v):\n%s", err, w.LogTail())
	default:
		return nil
	}
}

// Because adds the worker's own words to err where it has ended.
func (w *Worker) Because(err error) error {
	if ended := w.Running(); err != nil && ended != nil {
		return fmt.Errorf("%w\n%w", err, ended)
	}
	return err
}

// Kill ends the worker as a crash would.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Kill() // it may have ended by itself
	w.wait()
}

// Stop asks the worker to end, and returns how it did.
func (w *Worker) Stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return w.Because(err)
	}
	if err := w.wait(); err != nil {
		return w.Because(err)
	}
	return nil
}

func (w *Worker) wait() error {
	err := <-w.done
	w.done <- err
	return err
}

// LogTail returns the last lines of the worker's log.
func (w *Worker) LogTail() string {
	log, err := os.ReadFile(w.log)
	if err != nil {
		return err.Error()
	}
	return tail(log)
}

func tail(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
