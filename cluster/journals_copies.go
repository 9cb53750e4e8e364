package cluster

import (
	"errors"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/observer"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

var _ observer.Copies = (*journals)(nil)

// Open implements observer.Copies.
func (j *journals) Open(k metadata.StreamJournal) (*raftgroup.Group, error) {
	h, err := j.get(k)
	if err != nil {
		return nil, orClosed(err)
	}
	g, err := h.open()
	return g, orClosed(err)
}

// orClosed says it in the words of storage that what is asked for is closed.
func orClosed(err error) error {
	if errors.Is(err, ErrClosed) {
		return storage.ErrClosed
	}
	return err
}

// Opened implements observer.Copies.
func (j *journals) Opened(k metadata.StreamJournal) *raftgroup.Group {
	h, err := j.get(k)
	if err != nil {
		return nil
	}
	return h.opened()
}

// EachOpen implements observer.Copies.
func (j *journals) EachOpen(f func(metadata.StreamJournal, *raftgroup.Group)) {
	j.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) { f(h.key(), g) })
}
