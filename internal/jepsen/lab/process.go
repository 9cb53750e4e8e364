//go:build linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process runs on a machine. Its methods are safe for concurrent use.
type Process struct {
	cmd   *exec.Cmd
	clock *clock
	done  chan struct{} // closed when the process is gone; err is set before
	err   error
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended is nil while the process runs, and then says how it ended.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("process %d ended: %s", p.PID(), p.cmd.ProcessState)
	default:
		return nil
	}
}

// Pause stops the process (SIGSTOP) until Resume, and returns when all of its threads stand still or it has ended.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for !p.stopped() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop within %s", p.PID(), patience)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// stopped says whether no thread of the process runs.
func (p *Process) stopped() bool {
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	if err != nil {
		return false
	}
	for _, name := range states {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // this thread has ended
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") && p.Ended() == nil {
			return false
		}
	}
	return true
}

// Resume lets the process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Terminate asks the process to end.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Kill ends the process, paused or not, and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal is nil for a process that has ended.
func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to process %d: %w", s, p.PID(), err)
	}
	return nil
}

// lockedBuffer is a buffer that the copying goroutine of a command may still write to when its reader gives up.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(bytes.TrimSpace(l.b.Bytes()))
}
