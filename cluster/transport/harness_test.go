package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

var group = transport.GroupID{15: 7}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until polls until a state is reached.
func until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !reached(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// pipes is a network within the process, for fake time.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
	wrap      func(net.Conn) net.Conn // of who dials
}

type pipeListener struct {
	pipes   *pipes
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{listeners: map[string]*pipeListener{}} }

func (n *pipes) listen(address string) *pipeListener {
	l := &pipeListener{pipes: n, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

func (n *pipes) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l, wrap := n.listeners[address], n.wrap
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dialing %s: %w", address, syscall.ECONNREFUSED)
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
	case <-l.closed:
		return nil, fmt.Errorf("dialing %s: %w", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if wrap != nil {
		here = wrap(here)
	}
	return here, nil
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.address} }

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.pipes.mu.Lock()
		defer l.pipes.mu.Unlock()
		if l.pipes.listeners[l.address] == l {
			delete(l.pipes.listeners, l.address)
		}
	})
	return nil
}

// node opens a transport on the pipes.
func (n *pipes) node(t testing.TB, id string, o transport.Options) *transport.Transport {
	t.Helper()
	o.Node, o.Listener, o.Dial = id, n.listen(id), n.dial
	if o.Cluster == "" {
		o.Cluster = "test"
	}
	tr, err := transport.Open(o)
	must(t, err)
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// pair opens two nodes that know each other, and waits until they are connected.
func (n *pipes) pair(t testing.TB, o transport.Options) (a, b *transport.Transport) {
	t.Helper()
	a, b = n.node(t, "a", o), n.node(t, "b", o)
	a.SetPeer("b", "b")
	b.SetPeer("a", "a")
	up := func() bool { return a.Stats().Peers["b"].Up && b.Stats().Peers["a"].Up }
	for range 5000 {
		if up() {
			return a, b
		}
		time.Sleep(time.Millisecond) // a poll with a deadline, which fake time passes at once
	}
	t.Fatal("the nodes do not connect")
	return nil, nil
}

// membersOf are voters with the ids of their nodes.
func membersOf(ids ...string) func() []raft.Server {
	var all []raft.Server
	for _, id := range ids {
		all = append(all, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return func() []raft.Server { return all }
}

func openGroup(t testing.TB, tr *transport.Transport) *transport.Group {
	t.Helper()
	g, err := tr.Group(group)
	must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	j, err := storage.Open("journal", storage.Options{FS: vfs.NewMem()})
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	g.Bind(j, raft.ServerID(tr.Node()), membersOf("a", "b", "c"))
	return g
}

// source is a journal with entries of the given sizes, and these entries as raft gives them to a transport.
func source(t testing.TB, sizes ...int) (*storage.Journal, []*raft.Log) {
	t.Helper()
	j, err := storage.Open("journal", storage.Options{FS: vfs.NewMem(), Commands: true})
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	var logs []*raft.Log
	for i, size := range sizes {
		l := &raft.Log{Index: uint64(i + 1), Term: 1, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(i + 1)}, size)}
		must(t, j.StoreLog(l))
		logs = append(logs, &raft.Log{Index: l.Index, Term: l.Term, Type: l.Type})
	}
	return j, logs
}

// appendOf is the request for logs[from:].
func appendOf(logs []*raft.Log, from int, commit uint64) *raft.AppendEntriesRequest {
	r := &raft.AppendEntriesRequest{Term: 1, LeaderCommitIndex: commit, PrevLogEntry: uint64(from), Entries: logs[from:]}
	if from > 0 {
		r.PrevLogTerm = 1
	}
	return r
}

// follower answers what a group receives, as raft's main goroutine would, until the test ends.
type follower struct {
	mu      sync.Mutex
	appends []raft.AppendEntriesRequest // with frames that are copies
	beats   int
	answer  func(rpc raft.RPC, n int) (any, error) // nil: yes to all
}

func follow(t testing.TB, g *transport.Group, answer func(raft.RPC, int) (any, error)) *follower {
	f := &follower{answer: answer}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case rpc := <-g.Consumer():
				rpc.Respond(f.take(rpc))
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() { close(stop); running.Wait() })
	return f
}

func (f *follower) take(rpc raft.RPC) (any, error) {
	f.mu.Lock()
	n := len(f.appends)
	if r, ok := rpc.Command.(*raft.AppendEntriesRequest); ok {
		if r.PrevLogEntry == 0 && len(r.Entries) == 0 {
			f.beats++
		} else {
			kept := *r
			kept.Entries = nil
			for _, l := range r.Entries {
				own := *l
				own.Extensions = bytes.Clone(l.Extensions)
				kept.Entries = append(kept.Entries, &own)
			}
			f.appends = append(f.appends, kept)
		}
	}
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(rpc, n)
	}
	return yes(rpc)
}

// heard has a member, on a node, hear its leader in a term, and answer.
func heard(t testing.TB, leader, member *transport.Group, node string, term uint64) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		done <- leader.AppendEntries(raft.ServerID(node), raft.ServerAddress(node), &raft.AppendEntriesRequest{Term: term}, &raft.AppendEntriesResponse{})
	}()
	rpc := <-member.Consumer()
	rpc.Respond(yes(rpc))
	must(t, <-done)
}

// yes is the answer of who agrees with everything.
func yes(rpc raft.RPC) (any, error) {
	switch r := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		return &raft.AppendEntriesResponse{Term: r.Term, LastLog: r.PrevLogEntry + uint64(len(r.Entries)), Success: true}, nil
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{Term: r.Term, Granted: true}, nil
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: r.Term, Granted: true}, nil
	case *raft.InstallSnapshotRequest:
		return &raft.InstallSnapshotResponse{Term: r.Term, Success: true}, nil
	}
	return &raft.TimeoutNowResponse{}, nil
}

func (f *follower) got() ([]raft.AppendEntriesRequest, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]raft.AppendEntriesRequest(nil), f.appends...), f.beats
}

// logs is what was logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) has(s ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range s {
		if !strings.Contains(l.buf.String(), s) {
			return false
		}
	}
	return true
}

func (l *logs) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), s)
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
