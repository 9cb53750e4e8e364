package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/services"
)

// Durabilities that a stream can be asked for.
const (
	durable    = "durable"    // on stable storage before the answer
	replicated = "replicated" // in memory before the answer, on disk later
)

// system is a server that is measured: a process of its own, with data in a folder of its own.
type system struct {
	name  string
	addrs []string
	pids  []int
	dir   string
	// members are the processes of a cluster, replicas the copies that a stream has there; none for one process.
	members  []member
	replicas int
	// settings are those of a stream that keeps what was asked for.
	settings map[string]string
	kill     func() error
	restart  func(ctx context.Context) error
	close    func() error
}

// startSystem starts the system of a name. What it keeps is on stable storage before the answer if mode is durable.
func startSystem(ctx context.Context, o options, name, mode string) (*system, error) {
	switch name {
	case "daybook":
		return startDaybook(ctx, o.binary, mode)
	case "kafka":
		k, err := services.StartKafka(ctx, services.Options{Variant: "fast", Args: []string{"log.segment.delete.delay.ms=1000"}})
		if err != nil {
			return nil, err
		}
		s := serviceSystem(name, k.Server, k.Close)
		if s.settings = nil; mode == durable {
			s.settings = map[string]string{"flush.messages": "1"}
		}
		return s, nil
	case "nats":
		var args []string
		if mode == durable {
			args = []string{"sync_interval: always"}
		}
		n, err := services.StartNATS(ctx, services.Options{Args: args})
		if err != nil {
			return nil, err
		}
		return serviceSystem(name, n.Server, n.Close), nil
	}
	return nil, fmt.Errorf("no system is named %q; there are daybook, kafka and nats", name)
}

func serviceSystem(name string, s *services.Server, end func() error) *system {
	out := &system{name: name, addrs: []string{s.Addr}, pids: []int{s.PID}, dir: s.Dir, kill: s.Kill, close: end}
	out.restart = func(ctx context.Context) error {
		err := s.Restart(ctx)
		out.pids = []int{s.PID}
		return err
	}
	return out
}

// startDaybook starts `daybook server` in a fresh folder.
func startDaybook(ctx context.Context, binary, mode string) (*system, error) {
	dir, err := os.MkdirTemp("", "daybook-bench-")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &system{name: "daybook", addrs: []string{addr}, dir: dir, settings: map[string]string{"daybook.durability": mode}}
	var cmd *exec.Cmd
	end := func(sig syscall.Signal) error {
		if cmd == nil || cmd.ProcessState != nil {
			return nil
		}
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
		return nil
	}
	s.kill = func() error { return end(syscall.SIGKILL) }
	s.close = func() error { return errors.Join(end(syscall.SIGTERM), os.RemoveAll(dir)) }
	s.restart = func(ctx context.Context) error {
		cmd = exec.Command(binary, "server", "--data", filepath.Join(dir, "data"), "--kafka", addr, "--http", "", "--log-level", "warn")
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		s.pids = []int{cmd.Process.Pid}
		return awaitKafka(ctx, addr)
	}
	if err := s.restart(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitKafka returns once the server answers.
func awaitKafka(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond }))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := client.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer on %s: %w", addr, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
