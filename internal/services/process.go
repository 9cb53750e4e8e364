package services

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is a running server with the processes it forked. Its methods are
// safe for concurrent use.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone; err is set before
	err  error
}

// startProcess starts the command as the leader of a process group of its own,
// so that a Ctrl-C in the terminal reaches only us, and with a death signal, so
// that it doesn't outlive us.
func startProcess(cmd *exec.Cmd, death syscall.Signal) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that started the
		// process ends. So this thread is kept for as long as the process lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// runQuiet runs a command made by exec.CommandContext that has nothing to say when
// it succeeds; an error holds the end of what it printed. It dies with us: half
// an installation must not go on growing when its lock is free again.
func runQuiet(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for one that left its group and holds the output
	p, err := startProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-p.done
	if p.err == nil {
		return nil
	}
	const most = 2000
	text := bytes.TrimSpace(out.Bytes())
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), p.err, text[max(0, len(text)-most):])
}

// alive says whether the process runs.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop asks the process to end and waits until it is gone. One that doesn't end
// in time is killed, which is an error.
func (p *process) stop(patience time.Duration) error {
	// Only the leader is asked: it ends the others in its own way.
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	// It may be paused.
	if err := p.signalGroup(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("process %d did not end within %s: killed", p.cmd.Process.Pid, patience), p.kill())
	}
}

// kill ends the whole group at once and waits until its leader is gone.
func (p *process) kill() error {
	if err := p.signalGroup(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// signalGroup sends the signal to the process and all it forked; a group that is
// gone is os.ErrProcessDone.
func (p *process) signalGroup(sig syscall.Signal) error {
	if !p.alive() {
		return os.ErrProcessDone
	}
	return signalGroup(p.cmd.Process.Pid, sig)
}

func signalGroup(leader int, sig syscall.Signal) error {
	err := syscall.Kill(-leader, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
