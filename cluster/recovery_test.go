package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/recovery"
	"github.com/daybook-data/daybook/internal/cable"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// onDisks gives each node a disk in memory.
func onDisks(disks *[]*vfs.Mem) func(*cluster.Options) {
	return func(o *cluster.Options) {
		m := vfs.NewMem()
		*disks = append(*disks, m)
		o.FS = m
	}
}

func report(t *testing.T, fsys vfs.FS, dir string) *recovery.Report {
	t.Helper()
	r, err := recovery.Inspect(fsys, dir)
	must(t, err)
	return r
}

func planned(t *testing.T, reports ...*recovery.Report) *recovery.Plan {
	t.Helper()
	p, err := recovery.MakePlan(reports)
	must(t, err)
	return p
}

var silent = slog.New(slog.DiscardHandler)

// Two of three nodes are destroyed. The third goes on with all it had, new nodes join and get everything; the two that
// come back after all are turned away, one or both, and change nothing.
func TestAClusterGoesOnAfterItLostItsMajority(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 3, "s")
	acked := fill(c, "s", "a", 20)
	must(t, c.Node(0).CommitOffsets(t.Context(), "g", []metadata.GroupOffset{{Stream: s.ID, Offset: 1000}}))
	last := c.Leader("s", 0)
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
		must(t, c.Node(i).SyncMeta(t.Context()))
	}
	clusterID := c.Node(0).ClusterID()
	for i := range 3 {
		c.Stop(i)
	}
	dir := c.Dir(last)
	r := report(t, vfs.OS{}, dir)
	if _, err := recovery.MakePlan([]*recovery.Report{r, report(t, vfs.OS{}, c.Dir((last+1)%3))}); !errors.Is(err, recovery.ErrNoRecovery) {
		t.Fatalf("with two of three nodes: %v", err)
	}
	p := planned(t, r)
	if len(p.Gone) != 2 || len(p.Journals) != 1 || len(p.Lost) != 0 || p.Journals[0].HadMajority {
		t.Fatalf("planned is %+v", p)
	}
	if found := p.Journals[0].Copy.Partitions[0]; found.Next < 20 || found.Next > 100 || found.Read != 1000 || found.Group != "g" {
		t.Errorf("of the partition it says %+v", found)
	}
	must(t, recovery.Apply(vfs.OS{}, dir, p, silent))
	n := c.Begin(last)
	c.WaitReady(last)
	if n.ClusterID() != clusterID || len(n.Members()) != 1 {
		t.Errorf("it goes on as cluster %s with members %v", n.ClusterID(), n.Members())
	}
	wantReplica(t, c, last, "s", acked)
	for offset, value := range fill(c, "s", "b", 10) {
		if _, again := acked[offset]; again {
			t.Fatalf("offset %d is given out a second time", offset)
		}
		acked[offset] = value
	}
	c.Add()
	c.Add()
	c.Until("three replicas again", func() bool {
		p, err := n.Moves().Resize(t.Context(), "s", 3, false)
		must(t, err)
		return p.Done
	})
	for _, i := range []int{last, 3, 4} {
		wantReplica(t, c, i, "s", acked)
	}
	olds := []int{(last + 1) % 3, (last + 2) % 3}
	for _, i := range olds { // both at once: they are a majority of what the cluster was
		c.Begin(i)
	}
	for _, i := range olds {
		select {
		case <-c.Node(i).Removed():
		case <-time.After(time.Minute):
			t.Fatalf("node %d does not learn that the cluster went on without it", c.Node(i).ID())
		}
		c.Stop(i)
		if _, err := recovery.Inspect(vfs.OS{}, c.Dir(i)); !errors.Is(err, metadata.ErrRemoved) {
			t.Errorf("what it has is offered again: %v", err)
		}
	}
	for offset, value := range fill(c, "s", "c", 5) {
		acked[offset] = value
	}
	wantReplica(t, c, c.Leader("s", 0), "s", acked)
}

// Of five nodes two are left. Both reports lead to the same plan; each journal goes on with the better of the copies, and
// those of which no copy is left are named and stay without a leader.
func TestSurvivorsAgreeOnAPlan(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, 5)
	untilVoters(t, c, 5)
	acked := map[string]map[int64]string{}
	for i, replicas := range [][]int32{{1, 2, 3}, {3, 4, 5}, {1, 4, 5}, {1, 2, 5}} {
		name := fmt.Sprint("s", i)
		s, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: name, Replication: 3})
		must(t, err)
		must(t, c.Node(0).Moves().SetReplicas(t.Context(), s.ID, 0, replicas))
		acked[name] = fill(c, name, "a", 5)
	}
	c.Until("all to lie where they should", func() bool {
		s := statusOf(t, c.Node(0))
		return s.Counts.Moving == 0 && s.Counts.UnderReplicated == 0
	})
	for i := range 4 {
		name := fmt.Sprint("s", i)
		for k := range 5 {
			if p, err := c.Node(k).Partition(name, 0); err == nil && slices.Contains(p.Replicas(), int32(k+1)) {
				wantReplica(t, c, k, name, acked[name])
			}
		}
	}
	for i := range 5 {
		must(t, c.Node(i).SyncMeta(t.Context()))
	}
	for i := range 5 {
		c.Stop(i)
	}
	reports := []*recovery.Report{report(t, vfs.OS{}, c.Dir(3)), report(t, vfs.OS{}, c.Dir(4))}
	p := planned(t, reports[0], reports[1])
	if q := planned(t, reports[1], reports[0]); q.Metadata != p.Metadata || len(q.Journals) != len(p.Journals) || q.Journals[0].Base != p.Journals[0].Base {
		t.Fatalf("the reports in another order give another plan: %+v and %+v", p, q)
	}
	if len(p.Journals) != 3 || len(p.Lost) != 1 || p.Lost[0].Name != "s0" {
		t.Fatalf("planned is %+v", p)
	}
	for _, j := range p.Journals {
		if want := j.Name != "s3"; j.HadMajority != want {
			t.Errorf("of journal %s it says that it has a majority: %v", j.Name, j.HadMajority)
		}
	}
	for _, i := range []int{3, 4} {
		must(t, recovery.Apply(vfs.OS{}, c.Dir(i), p, silent))
	}
	wantRecovered(t, c, p, reports)
	for _, i := range []int{3, 4} {
		c.Begin(i)
	}
	for _, i := range []int{3, 4} {
		c.WaitReady(i)
	}
	for _, name := range []string{"s1", "s2"} {
		for _, i := range []int{3, 4} {
			wantReplica(t, c, i, name, acked[name])
		}
		fill(c, name, "b", 5)
	}
	wantReplica(t, c, 4, "s3", acked["s3"])
	if all := statusOf(t, c.Node(3)); all.Counts.Leaderless != 1 || all.Counts.Nodes != 2 {
		t.Errorf("the status counts %+v", all.Counts)
	}
}

// wantRecovered asks nodes 4 and 5, which were just recovered as p says, and which it says has been done.
func wantRecovered(t *testing.T, c *clustertest.Cluster, p *recovery.Plan, before []*recovery.Report) {
	t.Helper()
	for _, i := range []int{3, 4} {
		r, err := recovery.Inspect(vfs.OS{}, c.Dir(i))
		if p.Metadata == int32(i+1) {
			must(t, err)
			if _, err = recovery.MakePlan([]*recovery.Report{before[0], before[1], r}); err == nil || !strings.Contains(err.Error(), "start their servers") {
				t.Errorf("planned with reports of before and after a recovery, which says: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "has been recovered already") || !strings.Contains(err.Error(), "start their servers") {
			t.Errorf("asked once more after it was recovered, node %d says: %v", i+1, err)
		}
	}
}

// A recovery that is cut off anywhere, by a loss of power too, is finished by the next one, with the same result; a node
// does not start in between.
func TestARecoveryCanBeCutOffAnywhere(t *testing.T) {
	t.Parallel()
	var disks []*vfs.Mem
	c, _ := replicated(t, 3, "s", onDisks(&disks))
	acked := fill(c, "s", "a", 20)
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
		must(t, c.Node(i).SyncMeta(t.Context()))
	}
	for i := range 3 {
		c.Stop(i)
	}
	reports := []*recovery.Report{report(t, disks[0], c.Dir(0)), report(t, disks[1], c.Dir(1))}
	for _, r := range reports { // as if there had been five nodes: two are no majority
		r.Voters = []int32{1, 2, 3, 4, 5}
	}
	p := planned(t, reports...)
	for i := range reports {
		dir, disk, refused := c.Dir(i), disks[i].Crash(disks[i].Doubts()), false
		cuts := vfs.Cuts{Rng: rand.New(rand.NewSource(int64(i))), Exhaustive: 2, Most: 3}
		faulty := vfs.NewFaulty(disk)
		moments := 0
		check := func(cut *vfs.Mem, kept []vfs.Doubt) bool {
			moments++
			if begun, err := recovery.Begun(cut, dir); err != nil {
				t.Errorf("reading what was begun: %v", err)
			} else if begun != nil {
				_, err := cluster.Open(cluster.Options{Dir: dir, FS: cut, Network: &cluster.Network{Listener: cable.Listen(t, "127.0.0.1:0")}})
				if refused = errors.Is(err, recovery.ErrBegun); !refused {
					t.Errorf("a node starts in the middle of a recovery: %v", err)
				}
			}
			if err := recovery.Apply(cut, dir, p, silent); err != nil {
				t.Errorf("recovering again: %v (kept %v)", err, kept)
				return false
			}
			checkRecovered(t, cut, dir, reports[i], p)
			return !t.Failed()
		}
		last := ""
		faulty.Before = func(op vfs.Op, name string) {
			if op == vfs.OpRead || op == vfs.OpOpen || t.Failed() {
				return
			}
			last = fmt.Sprint(op, " ", filepath.Base(name))
			cuts.At(disk, "", check)
		}
		must(t, recovery.Apply(faulty, dir, p, silent))
		checkRecovered(t, disk, dir, reports[i], p)
		if t.Failed() {
			t.Fatalf("node %d, before %s", i+1, last)
		}
		if moments < 10 || !refused {
			t.Errorf("only %d disks were looked at", moments)
		}
	}
}

// checkRecovered looks whether the directory holds what the plan says and what was there.
func checkRecovered(t *testing.T, fsys vfs.FS, dir string, before *recovery.Report, p *recovery.Plan) {
	t.Helper()
	tip := func(names ...string) (storage.Tip, error) {
		peek, err := storage.OpenPeek(fsys, filepath.Join(append([]string{dir}, names...)...))
		if err != nil {
			return storage.Tip{}, err
		}
		return peek.Tip(true)
	}
	goesOn := func(what string, self bool, old recovery.LogEnd, more, term uint64, names ...string) {
		now, err := tip(names...)
		if !self { // it comes from the other node
			aside, asideErr := tip(append([]string{"set-aside-1"}, names...)...)
			if !errors.Is(err, fs.ErrNotExist) || asideErr != nil || aside.Index != old.Entry {
				t.Errorf("%s should be set aside: %v, and there %+v, %v", what, err, aside, asideErr)
			}
			return
		}
		servers := raft.DecodeConfiguration(now.Config).Servers
		if err != nil || now.Index != old.Entry+more || now.Term != term || now.CurrentTerm != term || len(servers) != 1 || servers[0].Address != raft.ServerAddress(fmt.Sprint(before.Node)) {
			t.Errorf("%s ended at %+v and ends at %+v with members %v, %v; want %d more entries, of term %d", what, old, now, servers, err, more, term)
		}
	}
	j := p.Journals[0]
	goesOn("the metadata", before.Node == p.Metadata, before.Metadata, 2, p.MetadataTerm, "meta")
	goesOn("the journal", before.Node == j.Base.Node, before.Copies[0].LogEnd, 1, j.Term, "streams", j.Stream.String(), fmt.Sprint(j.Journal))
	if before.Node != p.Metadata {
		return
	}
	after, err := recovery.Inspect(fsys, dir)
	if err != nil {
		t.Errorf("after the recovery: %v", err)
		return
	}
	if after.Generation != 1 || len(after.Members) != 2 || !slices.Equal(after.Voters, []int32{before.Node}) {
		t.Errorf("after the recovery: generation %d, members %v, voters %v", after.Generation, after.Members, after.Voters)
	}
}
