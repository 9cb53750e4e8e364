package raftgroup

import (
	"context"
	"errors"
	"strings"

	"github.com/daybook-data/daybook/storage"
)

// Check reads the sealed segments of the log and the snapshots from the disk and checks every byte, at the rate that pace
// allows. A damaged snapshot is set aside. Where anything is damaged a new snapshot is taken: it has what the state in
// memory is, which was made of entries that were whole, so nothing that is damaged is needed at the next start. found is
// how many segments of the log were found to be damaged for the first time.
func (g *Machine) Check(pace func(bytes int) error) (found int, err error) {
	g.journal.Commit(g.raft.AppliedIndex()) // nobody reads it, so nobody else says so
	before := len(g.journal.Damages())
	for at, more := uint64(0), true; more; {
		next, err := g.journal.Check(at, pace)
		var d *storage.DamageError
		if err != nil && !errors.As(err, &d) {
			return found, err
		}
		at, more = next, next != 0
	}
	found = max(0, len(g.journal.Damages())-before)
	aside, err := g.snapshots.check()
	if err != nil {
		return found, err
	}
	if found == 0 && aside == 0 {
		return 0, nil
	}
	return found, g.outlive()
}

// outlive takes a new snapshot, and gives up the log up to behind what is known of it to be damaged: nothing that is
// damaged is needed any more then, by a start or by a member that lags.
func (g *Machine) outlive() error {
	g.outliving <- struct{}{}
	defer func() { <-g.outliving }()
	for _, d := range g.journal.Damages() {
		g.o.Logger.Error("bytes of the metadata's log on the disk are not what was written: a snapshot of the metadata takes their place", "damage", d.Error())
	}
	last, err := g.journal.LastIndex()
	if err != nil {
		return err
	}
	c := g.raft.ReloadableConfig()
	if upTo := g.journal.DamagedUpTo(); upTo > 0 {
		short := c
		short.TrailingLogs = min(c.TrailingLogs, last-min(last, upTo))
		if err := g.raft.ReloadConfig(short); err != nil {
			return err
		}
	}
	return errors.Join(g.Snapshot(), g.raft.ReloadConfig(c))
}

// outliveAgain is outlive, for when somebody has met damage.
func (g *Machine) outliveAgain(context.Context) {
	if len(g.journal.Damages()) == 0 || g.Err() != nil {
		return
	}
	if err := g.outlive(); err != nil && g.Err() == nil {
		g.o.Logger.Error("no snapshot could be taken in place of the damaged part of the metadata's log", "dir", g.o.Dir, "error", err)
	}
}

// check sets damaged snapshots aside and returns how many.
func (s *fileSnapshots) check() (aside int, err error) {
	names, err := s.fsys.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	before := 0
	for _, name := range names {
		if strings.HasSuffix(name, snapSuffix) {
			before++
		}
	}
	good, err := s.List()
	return max(0, before-len(good)), err
}
