package raftgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
)

// verdictFile is in the directory of a copy that was found to have diverged, and holds why. It goes with the directory: the
// copy serves nobody, votes for nobody and takes nothing, whatever restarts follow, until another one takes its place. Who
// removes it has the copy judged anew.
const verdictFile = "diverged"

// Verdict returns the verdict on the copy in a directory, nil if there is none.
func Verdict(fsys vfs.FS, dir string) error {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, verdictFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading whether the copy in %s has diverged: %w", dir, err)
	}
	return fmt.Errorf("%w (%s)", ErrDiverged, strings.TrimSpace(string(b)))
}

// keepVerdict notes for good that the copy has diverged. Of an observer's it is not known who is right.
func (g *Group) keepVerdict(why error) {
	if g.mirrors() {
		return
	}
	if err := vfs.WriteFile(g.o.Journal.FS, filepath.Join(g.o.Dir, verdictFile), []byte(why.Error()+"\n"), 0o644); err != nil {
		g.o.Logger.Error("it could not be noted that a copy of a journal has diverged: after a restart it serves until it was compared again", "dir", g.o.Dir, "error", err)
	}
}

// recall reads the verdict on the copy before its journal is opened. A group of one has nobody else to serve in its place,
// so there it is an error.
func (g *Group) recall(o Options) error {
	err := Verdict(o.Journal.FS, o.Dir)
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrDiverged) || o.Transport == nil {
		return err
	}
	g.outcast, g.care.diverged = err, err
	g.care.note("diverged", err)
	return nil
}

// castOut ends the raft of a copy that has diverged, as it was ended when that was found.
func (g *Group) castOut() {
	if g.outcast != nil {
		g.o.Logger.Error("a copy of a journal was found before not to be the same as the others: it serves nobody", "dir", g.o.Dir, "error", g.outcast)
		g.journal.Fail(g.outcast)
	}
}
