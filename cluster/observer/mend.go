package observer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

const (
	// mendEvery is how soon a damaged copy that could not be mended is tried again.
	mendEvery = 10 * time.Second
	// mendWithin bounds what an upstream may take to give a stretch.
	mendWithin = time.Minute
)

// Ring says that damage was found in a copy.
func (o *Observer) Ring() {
	select {
	case o.rot <- struct{}{}:
	default:
	}
}

// mend makes good what has rotted of the copies, from the upstreams, until ctx ends.
func (o *Observer) mend(ctx context.Context) {
	told := retry.Told{}
	for {
		select {
		case <-o.rot:
		case <-time.After(mendEvery):
		case <-ctx.Done():
			return
		}
		var all []*raftgroup.Group
		keys := map[*raftgroup.Group]metadata.StreamJournal{}
		o.o.Copies.EachOpen(func(k metadata.StreamJournal, g *raftgroup.Group) {
			all, keys[g] = append(all, g), k
		})
		for _, g := range all {
			for _, d := range g.Journal().Damages() {
				what := fmt.Sprint(keys[g], d.Position)
				if told.Fresh("found "+what, "it is") {
					o.o.Figures.Damaged.Add(1)
					o.logger.Error("bytes of a copy are not what was written: they are not served, and mended from an upstream", "damage", d.Error())
				}
				err := o.mendFrom(ctx, g.Journal(), keys[g], d)
				switch {
				case err == nil:
					o.o.Figures.Mended.Add(1)
					delete(told, "found "+what)
					delete(told, "left "+what)
				case ctx.Err() == nil && told.Fresh("left "+what, err.Error()):
					o.logger.Error("damaged bytes of a copy could not be mended yet; trying again", "damage", d.Error(), "error", err)
				}
			}
		}
	}
}

// mendFrom replaces a damaged stretch by the bytes that one of the upstreams has.
func (o *Observer) mendFrom(ctx context.Context, j *storage.Journal, k metadata.StreamJournal, d *storage.DamageError) error {
	err := errors.New("no upstream that has the journal is connected")
	for _, l := range o.linkList() {
		_, client, _, ok := l.end(k)
		if !ok {
			continue
		}
		err = j.Mend(d.Position, func(position uint64, buf []byte) error {
			ctx, cancel := context.WithTimeout(ctx, mendWithin)
			defer cancel()
			return client.Stretch(ctx, mirrored(k), position, buf)
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}
