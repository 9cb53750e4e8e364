package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// text is a state machine that strings its commands together.
type text struct {
	mu  sync.Mutex
	all []byte
}

func (x *text) Apply(l *raft.Log) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = append(x.all, l.Data...)
	return nil
}

func (x *text) Snapshot() (raft.FSMSnapshot, error) { return x.copy(), nil }

func (x *text) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(r)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = b
	return err
}

func (x *text) copy() written {
	x.mu.Lock()
	defer x.mu.Unlock()
	return written(bytes.Clone(x.all))
}

type written []byte

func (w written) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(w); err != nil {
		return err
	}
	return sink.Close()
}

func (w written) Release() {}

// replica is a member of a real raft group over the transport.
type replica struct {
	*raft.Raft
	trans *transport.Transport
	log   *storage.Journal
	text  *text
}

func startReplica(t *testing.T, n *pipes, id string, voters []string) *replica {
	t.Helper()
	r := &replica{trans: n.node(t, id, transport.Options{}), text: &text{}}
	var err error
	r.log, err = storage.Open("journal", storage.Options{FS: vfs.NewMem(), Commands: true, SegmentBytes: 1 << 20})
	must(t, err)
	g, err := r.trans.Group(group)
	must(t, err)
	g.Bind(r.log, raft.ServerID(id), membersOf("a", "b", "c"))
	snaps := raft.NewInmemSnapshotStore()
	c := raft.DefaultConfig()
	c.LocalID, c.TrailingLogs, c.Logger = raft.ServerID(id), 4, hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout, c.CommitTimeout = 2*time.Second, 2*time.Second, time.Second, 100*time.Millisecond
	c.NoLegacyTelemetry = true
	if len(voters) > 0 {
		var conf raft.Configuration
		for _, v := range voters {
			conf.Servers = append(conf.Servers, raft.Server{ID: raft.ServerID(v), Address: raft.ServerAddress(v)})
		}
		must(t, raft.BootstrapCluster(c, r.log, r.log, snaps, g, conf))
	}
	r.Raft, err = raft.NewRaft(c, r.text, r.log, r.log, snaps, g)
	must(t, err)
	return r
}

func (r *replica) close() {
	_ = r.Shutdown().Error()
	_ = r.trans.Close()
	_ = r.log.Close()
}

// Raft itself, over the transport, in fake time: a group elects, replicates, sends a snapshot of more than its window to
// a member that comes late, and goes on under the next leader at once when its own is gone.
func TestRaftRunsOverTheTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newPipes()
		all := map[string]*replica{}
		defer func() {
			for _, r := range all {
				r.close()
			}
		}()
		know := func() {
			for _, r := range all {
				for id := range all {
					r.trans.SetPeer(id, id)
				}
			}
		}
		wait := func(what string, reached func() bool) {
			t.Helper()
			for range 1500 {
				if reached() {
					return
				}
				time.Sleep(20 * time.Millisecond) // of fake time
			}
			for id, r := range all {
				last, _ := r.log.LastIndex()
				t.Logf("%s is %v with %d bytes, applied to %d, log to %d, %v, %+v", id, r.State(), len(r.text.copy()), r.AppliedIndex(), last, r.log.Err(), r.trans.Stats())
			}
			t.Fatalf("waited half a minute for %s", what)
		}
		leader := func() (l *replica) {
			t.Helper()
			wait("a leader", func() bool {
				for _, r := range all {
					if r.State() == raft.Leader {
						l = r
						return true
					}
				}
				return false
			})
			return l
		}
		for _, id := range []string{"a", "b"} {
			all[id] = startReplica(t, n, id, []string{"a", "b"})
		}
		know()
		l := leader()
		var want []byte
		apply := func(i, size int) {
			t.Helper()
			b := bytes.Repeat([]byte(fmt.Sprintf("%04d", i)), size/4)
			want = append(want, b...)
			must(t, l.Apply(b, 0).Error())
		}
		for i := range 30 {
			apply(i, 200<<10)
		}
		must(t, l.Raft.Snapshot().Error())
		if first, _ := l.log.FirstIndex(); first < 20 {
			t.Fatalf("the log begins at %d; the test wants it to have lost its front", first)
		}
		apply(30, 4000)
		all["c"] = startReplica(t, n, "c", nil)
		know()
		must(t, l.AddVoter("c", "c", 0, 0).Error())
		for i := range 10 {
			apply(40+i, 5000)
		}
		same := func() bool {
			for _, r := range all {
				if !bytes.Equal(r.text.copy(), want) {
					return false
				}
			}
			return true
		}
		wait("all to have the same", same)
		began := time.Now()
		for id, r := range all {
			if r == l {
				r.close()
				delete(all, id)
			}
		}
		l = leader()
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("another member led after %v, want it before raft's timers", took)
		}
		apply(99, 100)
		wait("the rest to have the same", same)
	})
}
