package raftgroup_test

import (
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/cable"
	"github.com/daybook-data/daybook/storage"
)

// libraryTransport is raft's own transport over TCP, to compare with: entries go by value, in their Extensions.
type libraryTransport struct {
	*raft.NetworkTransport
	journal atomic.Pointer[storage.Journal]
}

// withFrames returns the request with the entries' frames, once the journal is known.
func (t *libraryTransport) withFrames(args *raft.AppendEntriesRequest) (*raft.AppendEntriesRequest, error) {
	j := t.journal.Load()
	if len(args.Entries) == 0 || j == nil {
		return args, nil
	}
	sent := *args
	sent.Entries = make([]*raft.Log, len(args.Entries))
	for i, e := range args.Entries {
		frame, err := j.Frame(e.Index)
		if err != nil {
			return nil, err
		}
		sent.Entries[i] = &raft.Log{Index: e.Index, Term: e.Term, Type: e.Type, Extensions: frame, Data: e.Data}
	}
	return &sent, nil
}

func (t *libraryTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent, err := t.withFrames(args)
	if err != nil {
		return err
	}
	return t.NetworkTransport.AppendEntries(id, to, sent, resp)
}

func (t *libraryTransport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	return &libraryPipeline{p, t}, err
}

type libraryPipeline struct {
	raft.AppendPipeline
	trans *libraryTransport
}

func (p *libraryPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	sent, err := p.trans.withFrames(args)
	if err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(sent, resp)
}

// threeMembers opens a group of three and returns its leader.
func threeMembers(b *testing.B, mode storage.Mode, transports map[string]raft.Transport) *raftgroup.Group {
	var peers []raft.Server
	for id, tr := range transports {
		peers = append(peers, raft.Server{ID: raft.ServerID(id), Address: tr.LocalAddr()})
	}
	var groups []*raftgroup.Group
	for id, tr := range transports {
		g := openGroup(b, raftgroup.Options{
			Dir: b.TempDir(), ID: id, Transport: tr, Peers: peers, RetainEvery: 100 * time.Millisecond,
			Journal: storage.Options{Mode: mode, Retention: storage.Retention{Bytes: 256 << 20}},
		})
		if t, ok := tr.(*libraryTransport); ok {
			t.journal.Store(g.Journal())
		}
		groups = append(groups, g)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, g := range groups {
			if _, self := g.Leader(); self {
				return g
			}
		}
	}
	b.Fatal("nobody leads")
	return nil
}

func ownTransports(b *testing.B) map[string]raft.Transport {
	all, nodes := map[string]raft.Transport{}, map[string]*transport.Transport{}
	addresses := map[string]string{}
	for _, id := range []string{"a", "b", "c"} {
		l := cable.Listen(b, "127.0.0.1:0")
		addresses[id] = l.Addr().String()
		t, err := transport.Open(transport.Options{Cluster: "bench", Node: id, Listener: l})
		must(b, err)
		b.Cleanup(func() { _ = t.Close() })
		nodes[id] = t
		g, err := t.Group(testGroup)
		must(b, err)
		all[id] = g
	}
	for _, t := range nodes {
		for id, address := range addresses {
			t.SetPeer(id, address)
		}
	}
	return all
}

func libraryTransports(b *testing.B) map[string]raft.Transport {
	all := map[string]raft.Transport{}
	for _, id := range []string{"a", "b", "c"} {
		t, err := raft.NewTCPTransport("127.0.0.1:0", nil, 3, 10*time.Second, io.Discard)
		must(b, err)
		b.Cleanup(func() { _ = t.Close() })
		all[id] = &libraryTransport{NetworkTransport: t}
	}
	return all
}

// cpuSeconds is what the process has used.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkThreeMembers replicates on three nodes in this process, over loopback; the CPU-seconds are those of all three
// and of the producers, for a GB that was acknowledged. One after the other: -benchtime=100000x -count=3.
func BenchmarkThreeMembers(b *testing.B) {
	for _, mode := range []storage.Mode{storage.Replicated, storage.Durable} {
		for _, size := range []int{2700, 28500} {
			for name, open := range map[string]func(*testing.B) map[string]raft.Transport{"own": ownTransports, "library": libraryTransports} {
				b.Run(map[storage.Mode]string{storage.Replicated: "replicated/", storage.Durable: "durable/"}[mode]+map[int]string{2700: "3K/", 28500: "28K/"}[size]+name, func(b *testing.B) {
					g := threeMembers(b, mode, open(b))
					before := cpuSeconds(b)
					produce(b, g, size, max(1, 86400/size))
					b.ReportMetric((cpuSeconds(b)-before)/(float64(b.N)*float64(size)/1e9), "CPU-s/GB")
				})
			}
		}
	}
}

// BenchmarkIdleGroups says what 300 groups on three nodes in this process cost while nothing happens: of each second, and
// for each node. -benchtime=1x.
func BenchmarkIdleGroups(b *testing.B) {
	m := startMany(b, 300)
	b.ReportMetric(m.within(time.Now(), "a", "b", "c").Seconds(), "s-until-led")
	const watched = 10 * time.Second
	frames := func() (n uint64) {
		for _, p := range m.net.places {
			n += p.trans.Stats().FramesSent
		}
		return n
	}
	for b.Loop() {
		sent, before := frames(), cpuSeconds(b)
		time.Sleep(watched) // the time is what is measured
		b.ReportMetric((cpuSeconds(b)-before)/watched.Seconds()/3, "cores/node")
		b.ReportMetric(float64(frames()-sent)/watched.Seconds()/3, "frames/s/node")
	}
}
