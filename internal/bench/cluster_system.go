package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/services"
)

// member is one process of a cluster.
type member struct {
	id     int32
	addr   string
	socket string // that its owner reaches; of Daybook only
	pid    func() int
	kill   func() error // at once
	pause  func() error // it stays connected and answers nothing
	resume func() error
	start  func(ctx context.Context) error // after it was killed; returns when it is ready
}

// startCluster starts n processes of a system as one cluster, in which a stream has a copy on each.
func startCluster(ctx context.Context, o options, name, mode string, n int) (*system, error) {
	switch {
	case name == "daybook":
		return startDaybooks(ctx, o.binary, mode, n)
	case name == "kafka" && mode == replicated:
		return startKafkas(ctx, n)
	}
	return nil, fmt.Errorf("there is no cluster of %s, %s", name, mode)
}

func startDaybooks(ctx context.Context, binary, mode string, n int) (*system, error) {
	dir, err := os.MkdirTemp("", "daybook-bench-")
	if err != nil {
		return nil, err
	}
	c, err := servers.Start(ctx, servers.Options{Binary: binary, Dir: dir, Nodes: n, Args: []string{"--log-level", "warn"}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &system{name: "daybook", addrs: c.Seeds(), pids: c.PIDs(), dir: dir, replicas: n, settings: map[string]string{"daybook.durability": mode}}
	s.close = func() error { return errors.Join(c.Close(), os.RemoveAll(dir)) }
	for _, node := range c.Nodes() {
		s.members = append(s.members, member{
			id: int32(node.ID), addr: node.Kafka, socket: filepath.Join(node.Data(), "owner.sock"), pid: node.PID, kill: node.Kill, pause: node.Pause, resume: node.Resume,
			start: func(ctx context.Context) error {
				if err := node.Start(); err != nil {
					return err
				}
				s.pids = c.PIDs()
				return node.AwaitReady(ctx)
			},
		})
	}
	return s, nil
}

func startKafkas(ctx context.Context, n int) (*system, error) {
	all, err := services.StartKafkas(ctx, n, services.Options{Variant: "fast", Args: []string{"log.segment.delete.delay.ms=1000"}})
	if err != nil {
		return nil, err
	}
	s := &system{name: "kafka", dir: all[0].Dir, replicas: n}
	s.close = func() (err error) {
		for _, k := range all {
			err = errors.Join(err, k.Close())
		}
		return err
	}
	for i, k := range all {
		s.addrs, s.pids = append(s.addrs, k.Addr), append(s.pids, k.PID)
		s.members = append(s.members, member{
			id: int32(i + 1), addr: k.Addr, pid: func() int { return k.PID }, kill: k.Kill, pause: k.Pause, resume: k.Resume,
			start: func(ctx context.Context) error {
				err := k.Restart(ctx)
				s.pids[i] = k.PID
				return err
			},
		})
	}
	return s, nil
}
