package raftgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
)

// divergedFile is in the directory of a copy that was found to have diverged, and holds why. It goes with the directory: the
// copy serves nobody, votes for nobody and takes nothing, whatever restarts follow, until another one takes its place. Who
// removes it has the copy judged anew.
const divergedFile = "diverged"

// ReadDiverged returns an ErrDiverged that says why, if the copy in a directory was found to have diverged, and nil if not.
func ReadDiverged(fsys vfs.FS, dir string) error {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, divergedFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading whether the copy in %s has diverged: %w", dir, err)
	}
	return fmt.Errorf("%w (%s)", ErrDiverged, strings.TrimSpace(string(b)))
}

// noteDiverged notes for good that the copy has diverged. Of an observer's it is not known who is right.
func (g *Group) noteDiverged(why error) {
	if g.mirrors() {
		return
	}
	if err := vfs.WriteFile(g.o.Journal.FS, filepath.Join(g.o.Dir, divergedFile), []byte(why.Error()+"\n"), 0o644); err != nil {
		g.o.Logger.Error("it could not be noted that a copy of a journal has diverged: after a restart it serves until it was compared again", "dir", g.o.Dir, "error", err)
	}
}

// recallDiverged reads whether the copy had diverged before its journal is opened. A group of one has nobody else to serve in its place,
// so there it is an error.
func (g *Group) recallDiverged(o Options) error {
	err := ReadDiverged(o.Journal.FS, o.Dir)
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

// failDiverged ends the raft of a copy that has diverged, as it was ended when that was found.
func (g *Group) failDiverged() {
	if g.outcast != nil {
		g.o.Logger.Error("a copy of a journal was found before not to be the same as the others: it serves nobody", "dir", g.o.Dir, "error", g.outcast)
		g.journal.Fail(g.outcast)
	}
}
