package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/load"
)

// answerBytes is about what the answer to a Produce request of one batch has.
const answerBytes = 60

// serveEcho answers whatever it is asked, and does nothing else: no protocol, no log, no disk. It is what a server in Go
// cannot do without. It ends when its standard input does.
func serveEcho() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // told to end
		}
		go echo(c)
	}
}

// echo answers one connection's questions, each of which begins with the number of bytes that follow.
func echo(c net.Conn) {
	defer c.Close()
	r, answer := bufio.NewReaderSize(c, 64<<10), make([]byte, answerBytes)
	for {
		head, err := r.Peek(4)
		if err != nil {
			return
		}
		if _, err := r.Discard(4 + int(binary.BigEndian.Uint32(head))); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// bareLoad is a load of questions and answers alone.
type bareLoad struct {
	clients int
	size    int     // bytes a question
	rate    float64 // questions a second over all clients, due at their times; 0: each when the one before is answered
}

// measure puts the load on an echo server in a process of its own.
func (l bareLoad) measure(ctx context.Context, d time.Duration) (row, error) {
	self, err := os.Executable()
	if err != nil {
		return row{}, err
	}
	cmd := exec.CommandContext(ctx, self, "-echo")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return row{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return row{}, err
	}
	if err := cmd.Start(); err != nil {
		return row{}, err
	}
	defer func() {
		in.Close()
		_ = cmd.Wait() // it has nothing to say
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return row{}, err
	}
	conns := make([]net.Conn, l.clients)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", strings.TrimSpace(addr)); err != nil {
			return row{}, err
		}
		defer conns[i].Close()
	}
	var h load.Histogram
	before, err := load.CPUOf(cmd.Process.Pid)
	if err != nil {
		return row{}, err
	}
	if err := l.ask(ctx, conns, d, &h); err != nil {
		return row{}, err
	}
	after, err := load.CPUOf(cmd.Process.Pid)
	if err != nil {
		return row{}, err
	}
	r := row{what: "bare echo server", latency: h.Latency()}
	r.records, r.server = float64(r.latency.Count)/d.Seconds(), float64((after-before).Microseconds())/float64(r.latency.Count)
	return r, nil
}

// ask sends questions on all connections for a while.
func (l bareLoad) ask(ctx context.Context, conns []net.Conn, d time.Duration, h *load.Histogram) error {
	end := time.Now().Add(d)
	var turns chan time.Time
	group, ctx := errgroup.WithContext(ctx)
	if l.rate > 0 {
		turns = make(chan time.Time, 100*len(conns))
		group.Go(func() error {
			defer close(turns)
			return load.Pace(ctx, -1, time.Duration(float64(time.Second)/l.rate), end, func(_ int64, at time.Time) error {
				select {
				case turns <- at:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
	}
	for _, c := range conns {
		group.Go(func() error {
			question, answer := make([]byte, l.size), make([]byte, answerBytes)
			binary.BigEndian.PutUint32(question, uint32(l.size-4))
			for at := time.Now(); at.Before(end); at = time.Now() {
				if turns != nil {
					due, more := <-turns
					if !more {
						return nil
					}
					at = due
				}
				if _, err := c.Write(question); err != nil {
					return err
				}
				if _, err := io.ReadFull(c, answer); err != nil {
					return err
				}
				h.Add(time.Since(at), 1)
			}
			return nil
		})
	}
	return group.Wait()
}
