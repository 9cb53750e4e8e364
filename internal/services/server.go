package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// startPatience bounds a start whose context has no deadline.
const startPatience = 2 * time.Minute

// stopPatience is how long a server may take to end after it was asked to.
const stopPatience = time.Minute

// trainPatience is that of a JVM that writes its class archive at the end, which
// takes seconds of a busy machine's CPU.
const trainPatience = 5 * time.Minute

// Options say how a server is started. The zero value is a fresh server on a
// free port.
type Options struct {
	// Dir keeps the server's data and log. Data already there is used. Empty: a
	// temporary directory, removed by Close.
	Dir string
	// Port is the TCP port on 127.0.0.1; 0 is a free one.
	Port int
	// Args are further arguments of the server or, for Elasticsearch and Kafka,
	// settings as name=value. They win over ours.
	Args []string
	// Variant is a comma-separated list of shorthands, see the start functions.
	Variant string
}

// Server is a running server; the start functions return one inside their own
// types. The methods that end or start it must not be called concurrently.
type Server struct {
	Addr string // host:port
	Dir  string // data and log
	PID  int    // of the running or last process

	launch launch
	proc   *process
	work   *workDir
	port   *portLease
}

// launch is what differs between one kind of server and another.
type launch struct {
	name string // for messages and the log's file name
	// command prepares the data and returns what to run. It is called once for
	// each start. The context bounds the preparation, not the server.
	command func(ctx context.Context) (*exec.Cmd, error)
	// ready makes one attempt to talk to the server.
	ready func(ctx context.Context) error
	// death is sent when this process dies; 0 is SIGKILL. A server whose
	// children outlive its sudden death needs a milder one.
	death syscall.Signal
}

// newServer reserves the directory and the port; the caller fills in the launch
// and calls run.
func newServer(ctx context.Context, c cache, name string, o Options) (s *Server, err error) {
	work, err := c.workDir(ctx, o.Dir, name)
	if err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", name, err)
	}
	port, err := c.leasePort(o.Port)
	if err != nil {
		return nil, errors.Join(err, work.Close())
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.port))
	return &Server{Addr: addr, Dir: work.path, work: work, port: port}, nil
}

// open does the first start. If it fails, nothing is left.
func (s *Server) open(ctx context.Context, l launch) error {
	s.launch = l
	if err := s.run(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// run starts the process and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	cmd, err := s.launch.command(ctx)
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.launch.name, err)
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	death := s.launch.death
	if death == 0 {
		death = syscall.SIGKILL
	}
	s.proc, err = startProcess(cmd, death)
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.launch.name, err)
	}
	s.PID = cmd.Process.Pid
	if err := s.await(ctx); err != nil {
		return fmt.Errorf("starting %s: %w; the end of its log:\n%s", s.launch.name, errors.Join(err, s.proc.kill()), s.LogTail())
	}
	return nil
}

// await polls until the server answers, ends or the context does.
func (s *Server) await(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := s.launch.ready(probe)
		cancel()
		if err == nil && s.proc.alive() {
			return nil
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("it ended by itself: %s", s.proc.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("no answer on %s: %w: %w", s.Addr, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// poll calls the function until it returns nil or the context ends.
func poll(ctx context.Context, f func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// Stop asks the server to end and waits until it is gone. Data, directory and
// port are kept for Restart. A server that has ended already is no error.
func (s *Server) Stop() error {
	return s.stopWithin(stopPatience)
}

func (s *Server) stopWithin(patience time.Duration) error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.stop(patience); err != nil {
		return fmt.Errorf("stopping %s: %w", s.launch.name, err)
	}
	return nil
}

// Kill ends the server and all it forked with SIGKILL, as a crash would, and
// waits until it is gone. Data, directory and port are kept for Restart.
func (s *Server) Kill() error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.kill(); err != nil {
		return fmt.Errorf("killing %s: %w", s.launch.name, err)
	}
	return nil
}

// Restart starts the server again on the same data and port, stopping it first
// if it runs, and returns once it answers.
func (s *Server) Restart(ctx context.Context) error {
	if s.work == nil {
		return fmt.Errorf("restarting %s: it is closed", s.launch.name)
	}
	if err := s.Stop(); err != nil {
		return err
	}
	return s.run(ctx)
}

// Pause freezes the server: it stays connected and answers nothing until Resume.
// It is os.ErrProcessDone if the server has ended; so is Resume.
func (s *Server) Pause() error { return s.proc.signalGroup(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.proc.signalGroup(syscall.SIGCONT) }

// Done returns a channel that is closed when the process that runs now has ended.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

// Close ends the server for good and gives its port back. With data in a
// directory of the caller's it is stopped; otherwise it is killed, and its
// temporary directory removed. Close may be called more than once.
func (s *Server) Close() error {
	if s.work == nil {
		return nil
	}
	end := s.Stop
	if s.work.temporary() {
		end = s.Kill
	}
	err := errors.Join(end(), s.work.Close(), s.port.Close())
	s.work, s.port = nil, nil
	return err
}

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.Dir, s.launch.name+".log") }

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string {
	text, err := os.ReadFile(s.Log())
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], nil))
}
