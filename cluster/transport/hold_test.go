package transport_test

import (
	"bytes"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// leader is a group's member that leads in term 1, while there are members b and c.
type leader struct {
	n      *pipes
	trans  *transport.Transport
	group  *transport.Group
	other  *transport.Transport // b's
	logs   []*raft.Log
	term   atomic.Uint64 // 0: it does not lead
	member atomic.Bool   // b is one
}

// leadOver has a lead, connected to b.
func leadOver(t *testing.T) *leader {
	l := &leader{n: newPipes()}
	l.trans, l.other = l.n.pair(t, transport.Options{})
	l.group = openGroup(t, l.trans)
	j, logs := source(t, 10, 10, 10)
	l.logs = logs
	l.term.Store(1)
	l.member.Store(true)
	l.group.Bind(j, "a", func() []raft.Server {
		return slices.DeleteFunc(membersOf("a", "b", "c")(), func(s raft.Server) bool { return s.ID == "b" && !l.member.Load() })
	})
	l.group.TellCommitted(func() (uint64, uint64, bool) { return 0, l.term.Load(), l.term.Load() != 0 })
	return l
}

// send asks b what raft would.
func (l *leader) send(req any) (done chan error, resp *raft.AppendEntriesResponse) {
	done, resp = make(chan error, 1), &raft.AppendEntriesResponse{}
	go func() {
		switch r := req.(type) {
		case *raft.AppendEntriesRequest:
			done <- l.group.AppendEntries("b", "b", r, resp)
		case *raft.InstallSnapshotRequest:
			done <- l.group.InstallSnapshot("b", "b", r, &raft.InstallSnapshotResponse{}, bytes.NewReader([]byte("state")))
		}
	}()
	return done, resp
}

// pending fails the test if a request has ended.
func pending(t *testing.T, when string, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("%s the request ended with %v", when, err)
	default:
	}
}

// However long a node was away, what waits for it goes within a second of its return and of its opening the group: raft,
// which counts failures, sees none. Heartbeats fail meanwhile.
func TestWhatWaitsForANodeGoesWhenItIsThere(t *testing.T) {
	t.Parallel()
	for name, req := range map[string]func([]*raft.Log) any{
		"entries": func(logs []*raft.Log) any { return appendOf(logs, 1, 0) },
		"snapshot": func([]*raft.Log) any {
			r := snapshotOf(len("state"))
			r.Term = 1
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := leadOver(t)
				must(t, l.other.Close())
				synctest.Wait()
				done, resp := l.send(req(l.logs))
				time.Sleep(10 * time.Minute)
				pending(t, "while the node is down", done)
				began := time.Now()
				if err := l.group.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesResponse{}); err == nil || time.Since(began) > 0 {
					t.Errorf("a heartbeat to a dead node: %v after %v", err, time.Since(began))
				}
				b := l.n.node(t, "b", transport.Options{})
				b.SetPeer("a", "a")
				time.Sleep(10 * time.Second)
				pending(t, "while the group is not open", done)
				began = time.Now()
				f := follow(t, openGroup(t, b), func(rpc raft.RPC, _ int) (any, error) {
					if rpc.Reader != nil {
						if _, err := io.Copy(io.Discard, rpc.Reader); err != nil {
							return nil, err
						}
					}
					return yes(rpc)
				})
				must(t, <-done)
				if took := time.Since(began); took > time.Second {
					t.Errorf("the request went after %v", took)
				}
				if got, _ := f.got(); name == "entries" && (!resp.Success || len(got) != 1 || got[0].PrevLogEntry != 1 || len(got[0].Entries) != 0) {
					t.Errorf("got %+v, and the follower %+v, want the request without its entries", resp, got)
				}
			})
		})
	}
}

// A node that comes back and connects is connected to at once, not with the next try.
func TestWhoConnectsIsConnectedTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := leadOver(t)
		for range 5 {
			must(t, l.other.Close())
			done, _ := l.send(appendOf(l.logs, 1, 0))
			time.Sleep(time.Minute)
			began := time.Now()
			l.other = l.n.node(t, "b", transport.Options{})
			follow(t, openGroup(t, l.other), nil)
			l.other.SetPeer("a", "a")
			must(t, <-done)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
	})
}

// A request waits no longer than there is somebody to wait: whose lead ends, who is let go, and who has no such member any
// more, hears that it has failed, whether the node is down or has not opened the group.
func TestARequestWaitsOnlyForItsLeader(t *testing.T) {
	t.Parallel()
	ends := map[string]func(l *leader){
		"lead lost":      func(l *leader) { l.term.Store(0) },
		"led anew":       func(l *leader) { l.term.Store(2) },
		"let go":         func(l *leader) { l.group.LetGo() },
		"member removed": func(l *leader) { l.member.Store(false) },
		"node removed":   func(l *leader) { l.trans.RemovePeer("b") },
		"closed":         func(l *leader) { _ = l.trans.Close() },
	}
	for name, end := range ends {
		for _, down := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := leadOver(t)
					if down {
						must(t, l.other.Close())
					}
					done, _ := l.send(appendOf(l.logs, 1, 0))
					time.Sleep(10 * time.Second)
					pending(t, "before it", done)
					end(l)
					began := time.Now()
					if err := <-done; err == nil || time.Since(began) > time.Second {
						t.Errorf("got %v after %v", err, time.Since(began))
					}
					done, _ = l.send(appendOf(l.logs, 1, 0))
					began = time.Now()
					if err := <-done; err == nil || time.Since(began) > time.Second {
						t.Errorf("another request: got %v after %v", err, time.Since(began))
					}
				})
			})
		}
	}
}
