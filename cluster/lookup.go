package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// ErrNoKeyIndex says that a stream keeps no index by key.
var ErrNoKeyIndex = fmt.Errorf("the stream has no key index: set %s=true; records that are there are indexed as well", metadata.SettingKeyIndex)

// Order is the order in which a key's records are looked up.
type Order bool

// The orders of Lookup.
const (
	OldestFirst Order = false
	NewestFirst Order = true
)

// Lookup returns the committed records of a key in a stream, over all of its
// partitions, in the order in which they were appended or the other way round: at
// least all that were acknowledged before the call, on whichever replica; on an
// observer what it has. An error ends it: ErrUnknownStream, ErrNoKeyIndex,
// ErrNotLeader where a journal is not on this node or nobody leads it, the
// context's, a *storage.DamageError, or that of the disk.
func (n *Node) Lookup(ctx context.Context, stream string, key []byte, order Order) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		all, err := n.finders(ctx, stream, key, order)
		defer func() {
			for _, f := range all {
				f.stop()
			}
		}()
		for err == nil {
			if err = ctx.Err(); err != nil {
				break
			}
			var r storage.Record
			var ok bool
			if r, ok, err = takeNext(all, order); err != nil || !ok {
				break
			}
			if !yield(r, nil) {
				return
			}
		}
		if errors.Is(err, storage.ErrNoKeyIndex) {
			err = ErrNoKeyIndex
		}
		if err != nil {
			yield(storage.Record{}, err)
		}
	}
}

// Latest returns the last committed record of a key; false if there is none. Its
// value is nil if the key was deleted.
func (n *Node) Latest(ctx context.Context, stream string, key []byte) (storage.Record, bool, error) {
	next, stop := iter.Pull2(n.Lookup(ctx, stream, key, NewestFirst))
	defer stop()
	r, err, ok := next()
	return r, ok && err == nil, err
}

// finder is a lookup in one journal, and the record it stands at.
type finder struct {
	next func() (storage.Record, error, bool)
	stop func()
	at   storage.Record
	more bool
}

// finders begins the lookup in each of the stream's journals.
func (n *Node) finders(ctx context.Context, stream string, key []byte, order Order) (all []*finder, err error) {
	s, ok := n.meta.Stream(stream)
	if !ok {
		return nil, metadata.ErrUnknownStream
	}
	l, err := n.journals.live(s)
	if err != nil {
		return nil, err
	}
	for _, h := range l.journals {
		j, err := n.fresh(ctx, h)
		if err != nil {
			return all, err
		}
		j.KeepIndexes(l.policy.Indexes)
		f := &finder{}
		f.next, f.stop = iter.Pull2(j.Find(key, order == NewestFirst))
		all = append(all, f)
		if err := f.advance(); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (f *finder) advance() (err error) {
	f.at, err, f.more = f.next()
	return err
}

// takeNext takes the record that was appended first (or last) of those that the
// finders stand at.
func takeNext(all []*finder, order Order) (r storage.Record, ok bool, err error) {
	var best *finder
	for _, f := range all {
		if f.more && (best == nil || f.at.Stamp != best.at.Stamp && f.at.Stamp > best.at.Stamp == bool(order)) {
			best = f
		}
	}
	if best == nil {
		return storage.Record{}, false, nil
	}
	r = best.at
	return r, true, best.advance()
}
