package storage

import (
	"fmt"
	"io"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Dump writes one line for each frame and batch of a journal that no process has open, and goes on behind damage where
// it can.
func Dump(dir string, out io.Writer) error { return DumpFS(vfs.OS{}, dir, out) }

// DumpFS is Dump on another file system.
func DumpFS(fsys vfs.FS, dir string, out io.Writer) error {
	w, err := openWalk(fsys, dir, false)
	if err != nil {
		return err
	}
	defer w.close()
	problems := w.problems
	if _, err := fmt.Fprintf(out, "front position %d, raft index %d term %d\n", w.tail.pos, w.tail.index, w.tail.term); err != nil {
		return err
	}
	w.each = func(_ *segment, h *frameHeader, frame []byte) error { return dumpFrame(out, h, frame) }
	for _, base := range w.bases {
		if _, err := fmt.Fprintf(out, "segment %s\n", segName(base)); err != nil {
			return err
		}
		if err := w.segment(base, &problems); err != nil {
			return err
		}
		for _, p := range problems {
			if _, err := fmt.Fprintf(out, "damage: %v\n", p); err != nil {
				return err
			}
		}
		problems = nil
	}
	_, err = fmt.Fprintf(out, "end position %d, durable to %d\n", w.tail.pos, w.durable)
	return err
}

func dumpFrame(out io.Writer, h *frameHeader, frame []byte) error {
	_, err := fmt.Fprintf(out, "frame %d index %d term %d %s %d bytes crc %08x prev %08x time %d\n",
		h.position, h.index, h.term, h.typ, h.length, h.crc, h.prevCRC, h.stamp)
	at := frameHeaderBytes + h.dirBytes()
	for i := range h.dirBytes() / dirEntryBytes {
		if err != nil {
			return err
		}
		d := entryAt(frame, i)
		b := parseHeader(frame[at:])
		_, err = fmt.Fprintf(out, "  batch partition %d offset %d records %d %d bytes maxtime %d codec %d producer %d/%d sequence %d attributes %#x\n",
			d.partition, d.baseOffset, d.records, d.length, d.maxTimestamp, b.Compression(), b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Attributes)
		at += int(d.length)
	}
	return err
}
