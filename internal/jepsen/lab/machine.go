//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Machine runs processes in its own network and on its own disk. Safe for concurrent use.
type Machine struct {
	Disk *Disk // nil on the client's machine

	number int
	thread *thread
	net    *os.File // its network namespace
	log    string

	mu        sync.Mutex // guards all below
	processes []*Process
	shift     time.Duration // of the clock
}

func newMachine(network *Network, number int, o Options) (*Machine, error) {
	m := &Machine{number: number, thread: newThread(), log: filepath.Join(o.Logs, fmt.Sprintf("machine-%d.log", number))}
	if err := m.open(network, o.DiskBytes); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *Machine) open(network *Network, diskBytes int64) error {
	var tun *os.File
	err := m.thread.do(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making namespaces: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("keeping mounts to the namespace: %w", err)
		}
		if m.net, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		tun, err = openTUN(m.Address())
		return err
	})
	if err != nil {
		return err
	}
	network.plug(m.number, tun)
	if m.number == clientPort {
		return nil
	}
	m.Disk, err = newDisk(m.thread, diskBytes)
	return err
}

// Number is the machine's, counted from 1.
func (m *Machine) Number() int { return m.number }

// Address is the machine's in the lab's network.
func (m *Machine) Address() netip.Addr { return address(m.number) }

// Log is the file that takes what processes of the machine print.
func (m *Machine) Log() string { return m.log }

// Start starts a program on the machine, with the machine's clock. It ends with the lab at the latest.
func (m *Machine) Start(path string, args ...string) (*Process, error) {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has a descriptor of its own
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	// The kernel sends the death signal when the thread that started the process ends: the machine's, which lives as
	// long as the lab. The same thread traces it until its clock is there.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Ptrace: true}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.thread.do(func() (err error) {
		if err := cmd.Start(); err != nil {
			return err
		}
		if p.clock, err = giveClock(cmd.Process.Pid, m.shift); err != nil {
			err = errors.Join(err, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	m.processes = append(m.processes, p)
	return p, nil
}

// giveClock replaces the clock of a process that stands before its first instruction, traced by this thread, and lets it
// go.
func giveClock(pid int, shift time.Duration) (*clock, error) {
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, 0, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(pid, &status, 0, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for process %d to begin: %w", pid, err)
	}
	if !status.Stopped() {
		return nil, fmt.Errorf("process %d does not stop at its beginning: status %#x", pid, status)
	}
	c, err := newClock(pid, shift)
	if err != nil {
		return nil, err
	}
	if err := unix.PtraceDetach(pid); err != nil {
		return nil, errors.Join(fmt.Errorf("letting process %d go: %w", pid, err), c.close())
	}
	return c, nil
}

// SetClock puts the machine's time of day ahead of this machine's, or behind it, for all processes that run on it and
// those that will. Clocks that only measure what passes go on as they are.
func (m *Machine) SetClock(ahead time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shift = ahead
	var errs []error
	for _, p := range m.processes {
		errs = append(errs, p.clock.set(ahead))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("setting the clock of machine %d: %w", m.number, err)
	}
	return nil
}

// Output runs a program on the machine to its end and returns all it printed.
func (m *Machine) Output(ctx context.Context, path string, args ...string) ([]byte, error) {
	return m.thread.output(ctx, path, args...)
}

// FS is the machine's file system, as its processes see it.
func (m *Machine) FS() fs.FS { return os.DirFS(fmt.Sprintf("/proc/self/task/%d/root", m.thread.id)) }

func (m *Machine) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	if m.Disk != nil {
		errs = append(errs, m.Disk.Thaw())
	}
	for _, p := range m.processes {
		errs = append(errs, p.Kill(), p.clock.close())
	}
	m.thread.end()
	if m.net != nil {
		errs = append(errs, m.net.Close())
	}
	return errors.Join(errs...)
}

// thread is one of the system's threads: namespaces belong to these.
type thread struct {
	id   int
	work chan func()
}

func newThread() *thread {
	t := &thread{work: make(chan func())}
	started := make(chan bool)
	go t.run(started)
	if <-started {
		return t
	}
	defer t.end() // held until another is found
	return newThread()
}

// run does the thread's work. It starts with whether the thread will do: the process's first one won't, as it cannot
// end, and what /proc says of it is taken for all.
func (t *thread) run(started chan<- bool) {
	// It is never unlocked: the runtime ends the thread with the goroutine, as nothing else may run in its namespaces.
	runtime.LockOSThread()
	t.id = unix.Gettid()
	first := t.id == unix.Getpid()
	started <- !first
	for f := range t.work {
		f()
	}
	if first {
		runtime.UnlockOSThread()
	}
}

// do runs f on the thread and returns its error.
func (t *thread) do(f func() error) error {
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

// output runs a program in the thread's namespaces.
func (t *thread) output(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out lockedBuffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.do(cmd.Start); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return out.bytes(), fmt.Errorf("%s %v: %w: %s", filepath.Base(path), args, err, out.bytes())
	}
	return out.bytes(), nil
}

// end ends the thread; do must not be called any more.
func (t *thread) end() { close(t.work) }
