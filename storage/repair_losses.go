package storage

import (
	"fmt"
	"slices"
)

// losses notes what lies between two positions, as far as it can be read, and names the folder that it goes to.
func (r *Repair) losses(from, to uint64) error {
	r.From, r.To = from, to
	names, err := r.fsys.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	for i := 1; r.Quarantine == "" || slices.Contains(names, r.Quarantine); i++ {
		r.Quarantine = fmt.Sprintf("%s%d", quarantinePrefix, i)
	}
	w := *r.w
	kept := map[uint32]int64{} // where each partition ends before the loss
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		for i := range h.dirBytes() / dirEntryBytes {
			r.lose(h, entryAt(frame, i), kept)
		}
		return nil
	}
	for _, base := range w.bases {
		var known []error // the survey has them
		w.unlink(base)
		if err := w.segment(base, &known); err != nil {
			return err
		}
	}
	r.loseUnread()
	return nil
}

// lose notes a batch that can be read, if it lies within the loss.
func (r *Repair) lose(h *frameHeader, d dirEntry, kept map[uint32]int64) {
	next := d.baseOffset + int64(d.records)
	if h.position < r.From {
		kept[d.partition] = next
	}
	if h.position < r.From || h.position >= r.To {
		return
	}
	p, known := r.Lost[d.partition]
	if p.First = min(p.First, d.baseOffset); !known {
		p.First = d.baseOffset
	}
	if end, is := kept[d.partition]; is && !known {
		p.First = end // what lies between could not be read
	}
	p.Next = next
	p.Batches, p.Records = p.Batches+1, p.Records+int64(d.records)
	r.Lost[d.partition] = p
}

// loseUnread adds what cannot be read: where the log goes on tells how much it was.
func (r *Repair) loseUnread() {
	if r.front == nil {
		return
	}
	for id, next := range r.front.next {
		if had := r.w.start.front.next[id]; next > had {
			p := r.Lost[id]
			p.First, p.Next = had, next
			r.Lost[id] = p
		}
	}
}
