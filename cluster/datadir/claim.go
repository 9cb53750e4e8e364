package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/daybook-data/daybook/internal/vfs"
)

// claimName is the file in a journal's directory that says whose copy lies there. The logs of all journals begin alike, so
// that nothing else tells the files of one from those of another, or of another node, which has votes of its own: a directory
// that was put into the wrong place would take part in a group with a log that is none of its.
const claimName = "whose"

// ErrMisplaced: a directory holds another copy than the one that belongs there.
var ErrMisplaced = errors.New("the directory belongs to another copy")

// IsClaim says whether a name in a journal's directory is that of the note, which is no part of the copy.
func IsClaim(name string) bool { return name == claimName || name == claimName+".tmp" }

// Claim notes whose copy lies in a journal's directory, or checks it where that is noted. A directory without a whole note
// is believed: it is of a build before there were notes, or the power went before the note was on the disk.
func (d Dir) Claim(dir, whose string) error {
	name := path.Join(dir, claimName)
	note := []byte("daybook copy: " + whose + "\n")
	is, err := vfs.ReadFile(d.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.writeClaim(name, note)
	case err != nil:
		return fmt.Errorf("reading whose copy lies in %s: %w", dir, err)
	case bytes.Equal(is, note):
		return nil
	}
	other, whole := bytes.CutPrefix(is, []byte("daybook copy: "))
	other, ended := bytes.CutSuffix(other, []byte("\n"))
	if !whole || !ended || bytes.ContainsAny(other, "\x00\n") {
		return d.writeClaim(name, note)
	}
	return fmt.Errorf("%w: in %s lies %s, and %s should: put it back to where it came from; with nothing in its place, the node gets another copy from the others",
		ErrMisplaced, dir, other, whose)
}

// writeClaim puts the note in place in one step. It is not synced: a note that is lost is written again.
func (d Dir) writeClaim(name string, note []byte) error {
	tmp := name + ".tmp"
	f, err := d.FS.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("noting whose copy it is: %w", err)
	}
	_, err = f.WriteAt(note, 0)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.FS.Rename(tmp, name)
	}
	if err != nil {
		_ = d.FS.Remove(tmp) // the error that counts is the first
		return fmt.Errorf("noting whose copy it is: %w", err)
	}
	return nil
}
