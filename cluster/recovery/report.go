package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// Report is what a node's directory holds, of a cluster that lost its majority: all that is needed to decide with
// which copies the cluster goes on.
type Report struct {
	Cluster    string `json:"cluster_id"`
	Generation uint64 `json:"generation,omitempty"`
	Node       int32  `json:"node"`
	// Members are the nodes of the cluster as this one's metadata has them, Voters those that elect the metadata's leader.
	Members []metadata.Member `json:"members"`
	Voters  []int32           `json:"voters"`
	// Metadata is where the copy of the metadata ends.
	Metadata LogEnd `json:"metadata"`
	// Journals are those that the metadata knows, Copies those that the node has.
	Journals []PlacedJournal `json:"journals"`
	Copies   []FoundCopy     `json:"copies"`
}

// LogEnd is where a log ends on disk.
type LogEnd struct {
	Term  uint64 `json:"term"`
	Entry uint64 `json:"entry"`
	// CurrentTerm is the highest term that the copy has heard of.
	CurrentTerm uint64    `json:"current_term"`
	At          time.Time `json:"at,omitzero"`
}

// compare orders logs of one group: the one that is ahead has all that the other has that was ever acknowledged.
func (e LogEnd) compare(o LogEnd) int {
	return cmp.Or(cmp.Compare(e.Term, o.Term), cmp.Compare(e.Entry, o.Entry))
}

// JournalID names a journal of a stream.
type JournalID struct {
	Stream  metadata.StreamID `json:"stream_id"`
	Journal int32             `json:"journal"`
}

func (j JournalID) String() string { return fmt.Sprintf("%s/%d", j.Stream, j.Journal) }

func (j JournalID) compare(o JournalID) int {
	return cmp.Or(strings.Compare(j.Stream.String(), o.Stream.String()), cmp.Compare(j.Journal, o.Journal))
}

// PlacedJournal is a journal and the nodes that have it, as the metadata knows it.
type PlacedJournal struct {
	JournalID
	Name     string  `json:"stream"`
	Replicas []int32 `json:"replicas"`
}

// FoundCopy is a copy of a journal in a node's directory.
type FoundCopy struct {
	JournalID
	// Name is that of the stream; empty if the metadata does not know it.
	Name string `json:"stream"`
	Born uint64 `json:"born,omitempty"`
	LogEnd
	Partitions []FoundPartition `json:"partitions"`
	// Doubt says that the machine lost power, and with it maybe what the copy had acknowledged.
	Doubt bool `json:"doubt,omitempty"`
	// Damage is why the copy can't be used; empty if it can.
	Damage string `json:"damage,omitempty"`
}

// FoundPartition is where a partition ends.
type FoundPartition struct {
	Partition int32 `json:"partition"`
	// Next is the offset behind the last record of the copy.
	Next int64 `json:"next"`
	// Read is the highest position that a consumer group has committed, and Group that group. Above Next it bears witness of
	// records that this copy lacks.
	Read  int64  `json:"read,omitempty"`
	Group string `json:"group,omitempty"`
}

// usable says whether the cluster can go on with the copy.
func (c *FoundCopy) usable() bool { return c.Damage == "" && c.Entry > 0 }

// Inspect reads what a node's directory holds and changes nothing. No process may have it open.
func Inspect(fsys vfs.FS, dir string) (r *Report, err error) {
	lock, err := datadir.Dir{FS: fsys, Path: dir}.Lock()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	f, found, err := datadir.OpenFile(fsys, dir)
	switch {
	case err != nil:
		return nil, err
	case !found || f.Get().Node == 0:
		return nil, fmt.Errorf("%s is no directory of a node of a cluster: it has no %s", dir, datadir.FileName)
	case f.Get().Removed != "":
		return nil, fmt.Errorf("%w: node %d (%s): what it has does not count", metadata.ErrRemoved, f.Get().Node, f.Get().Removed)
	}
	me := f.Get()
	r = &Report{Cluster: me.Cluster, Generation: me.Generation, Node: me.Node}
	meta, err := r.readMeta(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) && me.Generation > 0 {
		err = fmt.Errorf("node %d has been recovered already, as generation %d, and gets the metadata from another survivor: start their servers and that of %s (%w)",
			me.Node, me.Generation, dir, err)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(me.Replicas)) {
		id, err := parseCopyName(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", datadir.FileName, err)
		}
		r.Copies = append(r.Copies, findCopy(fsys, dir, id, me.Replicas[name], meta))
	}
	return r, nil
}

// readMeta fills in what the metadata says.
func (r *Report) readMeta(fsys vfs.FS, dir string) (*metadata.State, error) {
	meta, err := datadir.PeekMeta(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of %s: %w", dir, err)
	}
	snap, conf, err := newestSnapshot(fsys, datadir.Dir{FS: fsys, Path: dir}.Meta())
	if err != nil {
		return nil, err
	}
	p, err := storage.OpenPeek(fsys, datadir.Dir{FS: fsys, Path: dir}.Meta())
	if err != nil {
		return nil, err
	}
	tip, err := p.Tip(true)
	if err != nil {
		return nil, fmt.Errorf("reading the end of the metadata: %w", err)
	}
	r.Metadata = LogEnd{Term: tip.Term, Entry: tip.Index, CurrentTerm: tip.CurrentTerm, At: tip.At}
	if snap.compare(r.Metadata) > 0 {
		r.Metadata.Term, r.Metadata.Entry = snap.Term, snap.Entry
	} else if len(tip.Config) > 0 {
		conf = raft.DecodeConfiguration(tip.Config)
	}
	for _, s := range conf.Servers {
		if s.Suffrage == raft.Voter {
			r.Voters = append(r.Voters, metadata.NodeAt(s.Address))
		}
	}
	r.Members = meta.Members()
	for _, s := range meta.Streams() {
		for j := range s.Journals {
			r.Journals = append(r.Journals, PlacedJournal{JournalID{s.ID, j}, s.Name, metadata.NodesOf(s.ReplicasOf(j))})
		}
	}
	return meta, nil
}

// newestSnapshot returns where the newest good snapshot ends, and the configuration in it.
func newestSnapshot(fsys vfs.FS, dir string) (end LogEnd, conf raft.Configuration, err error) {
	meta, _, err := raftgroup.NewestSnapshot(fsys, dir)
	if err != nil || meta == nil {
		return end, conf, err
	}
	return LogEnd{Term: meta.Term, Entry: meta.Index}, meta.Configuration, nil
}

// findCopy looks at a copy of a journal.
func findCopy(fsys vfs.FS, dir string, id JournalID, born uint64, meta *metadata.State) FoundCopy {
	c := FoundCopy{JournalID: id, Born: born}
	if s, ok := meta.StreamByID(id.Stream); ok {
		c.Name = s.Name
	}
	if err := errors.Join(raftgroup.ReadDiverged(fsys, datadir.Dir{FS: fsys, Path: dir}.Journal(id.Stream, id.Journal)), c.read(fsys, datadir.Dir{FS: fsys, Path: dir}.Journal(id.Stream, id.Journal), meta)); err != nil {
		c.Damage = err.Error()
	}
	return c
}

func (c *FoundCopy) read(fsys vfs.FS, dir string, meta *metadata.State) error {
	p, err := storage.OpenPeek(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("its files are gone")
	}
	if err != nil {
		return err
	}
	tip, err := p.Tip(false)
	if err != nil {
		return err
	}
	c.LogEnd, c.Doubt = LogEnd{Term: tip.Term, Entry: tip.Index, CurrentTerm: tip.CurrentTerm, At: tip.At}, tip.Doubt
	segments, err := p.Segments()
	if err != nil {
		return err
	}
	next := map[int32]int64{}
	for _, s := range segments {
		if len(s.Problems) > 0 {
			return s.Problems[0]
		}
		for id, r := range s.Partitions {
			next[int32(id)] = max(next[int32(id)], r.Next)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(next)) {
		f := FoundPartition{Partition: n, Next: next[n]}
		f.Group, f.Read = meta.Furthest(metadata.StreamPartition{Stream: c.Stream, Partition: n})
		c.Partitions = append(c.Partitions, f)
	}
	return nil
}

func parseCopyName(name string) (id JournalID, err error) {
	id.Stream, id.Journal, err = datadir.ParseCopyName(name)
	return id, err
}
