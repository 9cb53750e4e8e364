package storage

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Tip is the end of a log as it stands on disk.
type Tip struct {
	Index, Term uint64    // raft's, of the last entry; of the one before the front if there is none
	At          time.Time // the leader's time of the last entry; zero if there is none
	Position    uint64    // behind the last entry
	// CurrentTerm is raft's: it may be higher than that of the last entry.
	CurrentTerm uint64
	// Doubt says that the journal may lack entries that it had stored, or will say so once it is opened in this boot of the
	// machine; see [Journal.Doubt].
	Doubt bool
	// Config is raft's last configuration, as far as Tip has read: that of the front, or a later one.
	Config []byte
}

// Tip reads the end of the log: its last segment, or, if all is set, everything, which finds the last configuration. Damage
// in what it reads is an error of type *DamageError.
func (p *Peek) Tip(all bool) (t Tip, err error) {
	w, err := openWalk(p.fsys, p.dir, true)
	if err != nil {
		return t, err
	}
	front := w.tail
	t.Index, t.Term, t.Position, t.Config = front.index, front.term, front.pos, front.config
	if w.start != nil {
		if v := w.start.values["CurrentTerm"]; len(v) == 8 {
			t.CurrentTerm = binary.LittleEndian.Uint64(v)
		}
	}
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		t.Index, t.Term, t.At, t.Position = h.index, h.term, time.UnixMicro(h.stamp), h.position+uint64(h.length)
		if h.typ == frameConfig {
			t.Config = slices.Clone(frame[frameHeaderBytes : frameHeaderBytes+int(h.count)])
		}
		return nil
	}
	bases := w.bases
	if !all {
		bases = w.bases[max(0, len(w.bases)-1):]
		if len(w.bases) > 1 && p.emptySegment(w.bases[len(w.bases)-1]) {
			bases = w.bases[len(w.bases)-2:]
		}
	}
	for _, base := range bases {
		var problems []error
		if err := p.walk(w, base, &problems); err != nil && !errors.Is(err, os.ErrNotExist) {
			return t, err
		}
		if len(problems) > 0 {
			return t, problems[0]
		}
	}
	t.Doubt = w.doubtful(t.Position)
	return t, nil
}

// doubtful says whether a journal whose log ends at a position is in doubt, or will be when it is opened.
func (w *walk) doubtful(end uint64) bool {
	if w.start == nil {
		return false
	}
	_, in := w.start.values[doubtKey]
	boot, unsynced := w.start.values[bootKey]
	closed := w.closed && w.durable == end
	return in || unsynced && !closed && string(boot) != vfs.BootID()
}

// emptySegment says whether nothing was written to a segment yet.
func (p *Peek) emptySegment(base uint64) bool {
	w, err := openWalk(p.fsys, p.dir, true)
	if err != nil {
		return false
	}
	frames := 0
	w.each = func(*segment, *frameHeader, []byte) error { frames++; return nil }
	var problems []error
	err = p.walk(w, base, &problems)
	return err == nil && frames == 0 && len(problems) == 0
}
