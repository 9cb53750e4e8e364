// Package moves decides where journals lie, and has them moved: those of a new stream get their nodes, those there are get
// others when the load is spread, when a stream is to have more or fewer copies, when a node is taken out, and when copies
// are missing. Who suits best is package placement's to say; that the copies then follow is not done here.
//
// Nothing is kept but what the metadata says. A change of many journals is made in steps: each looks at what there is, and
// begins as much as may be on its way at a time. Whoever asks again, of whichever node, goes on.
package moves

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// ErrMembersDown: nodes are down that the change concerns.
var ErrMembersDown = errors.New("nodes are down")

// Options are what a Mover needs of its node. All is required.
type Options struct {
	// Alone says that there are no other nodes: all that can be done then is to place new streams.
	Alone  bool
	Self   int32 // the node's id
	Meta   *metadata.State
	Logger *slog.Logger
	// Propose changes the metadata, and returns when the change is there.
	Propose func(context.Context, metadata.Command) (any, error)
	// Sync returns when Meta has everything that was acknowledged before the call.
	Sync func(context.Context) error
	// Up says whether a node was heard of lately.
	Up func(node int32) bool
	// Lead says who leads a journal. It fails where the journal is deleted, or the node is closing.
	Lead func(metadata.StreamJournal) (Lead, error)
	// Needed says that the metadata can't go on without a node's vote.
	Needed func(node int32) bool
}

// Lead is who leads a journal.
type Lead struct {
	Node   int32   // -1: nobody is known to
	InSync []int32 // the nodes whose copies have what the leader has, or nearly so
}

// Mover moves journals. It is safe for concurrent use.
type Mover struct{ o Options }

// New returns a Mover.
func New(o Options) *Mover { return &Mover{o} }

// SetReplicas says which nodes are to have a journal, the one that should lead it first. It returns when that is decided;
// the copies move then: a new one gets everything before it counts, and an old one is given up only when all new ones
// count.
func (m *Mover) SetReplicas(ctx context.Context, id metadata.StreamID, journal int32, nodes []int32) error {
	return m.set(ctx, id, journal, nodes, len(nodes))
}

// Reorder is SetReplicas of a journal that goes on to want as many copies as it did.
func (m *Mover) Reorder(ctx context.Context, s *metadata.Stream, journal int32, nodes []int32) error {
	return m.set(ctx, s.ID, journal, nodes, s.WantedOf(journal))
}

// set is SetReplicas of a journal that is to have more or less copies than it gets now.
func (m *Mover) set(ctx context.Context, id metadata.StreamID, journal int32, nodes []int32, wanted int) error {
	if m.o.Alone {
		return fmt.Errorf("%w: this node is alone", metadata.ErrInvalidReplication)
	}
	place := &metadata.PlaceJournal{ID: id, Journal: journal, Nodes: nodes}
	if wanted != len(nodes) {
		place.Wanted = int32(wanted)
	}
	_, err := m.o.Propose(ctx, metadata.Command{PlaceJournal: place})
	return err
}
