package storage

import (
	"encoding/binary"
	"errors"
	"maps"

	"github.com/hashicorp/raft"
)

// A trim is an entry of the log that says from where on a partition is read. It is agreed as records are, so a leader that
// has what was acknowledged knows what was deleted, and each replica deletes the same. It takes effect where it is
// committed: an entry that a change of leader cuts away again deletes nothing. It speaks only of records before itself, so
// where retention has removed it, they are gone too.

const (
	// trimPrefix starts the data of a trim; the partition u32 and the offset i64 follow.
	trimPrefix = 0x31544244 // "DBT1"
	trimBytes  = 16
)

// TrimCommand returns the data of a raft entry that makes offset the first one to be read in a partition. Space for it is
// reserved as for a command, by [CommandBytes].
func TrimCommand(partition uint32, offset int64) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, trimBytes), trimPrefix)
	return put64(put32(b, partition), uint64(offset))
}

func parseTrim(data []byte) (partition uint32, offset int64, ok bool) {
	if len(data) != trimBytes || binary.LittleEndian.Uint32(data) != trimPrefix {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint32(data[4:]), int64(binary.LittleEndian.Uint64(data[8:])), true
}

// noteTrim notes an entry that may be a trim and is not yet known to be committed. The caller holds mu.
func (j *Journal) noteTrim(h *frameHeader) {
	if h.typ == frameCommand && !j.o.Commands {
		j.index.trims = append(j.index.trims, h.index)
	}
}

// noteTrims notes those of a log that was read. What took effect before does so again, and changes nothing.
func (l *loadedLog) noteTrims() {
	for _, s := range l.index.segs {
		for i, e := range s.entries {
			if e.typ == frameCommand {
				l.index.trims = append(l.index.trims, s.first+uint64(i))
			}
		}
	}
}

// trimsDue says whether there are trims among the entries up to index. The caller holds mu.
func (x *index) trimsDue(index uint64) bool { return len(x.trims) > 0 && x.trims[0] <= index }

// takeTrims gives the trims among the entries up to index, which are committed, their effect: readers see it before they
// see that the entries are committed. One that cannot be read, as it is damaged, is tried again with the next commit.
func (j *Journal) takeTrims(index uint64) {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	j.mu.Lock()
	n := 0
	for n < len(j.index.trims) && j.index.trims[n] <= index {
		n++
	}
	due := j.index.trims[:n:n]
	j.index.trims = j.index.trims[n:]
	j.mu.Unlock()

	var left []uint64
	starts := maps.Clone(j.start.starts)
	for _, i := range due {
		frame, err := j.Frame(i)
		if errors.Is(err, raft.ErrLogNotFound) {
			continue
		}
		if err != nil {
			left = append(left, i)
			j.o.Logger.Warn("records that were deleted are still served: the entry that says so cannot be read", "dir", j.dir, "entry", i, "error", err)
			continue
		}
		count := binary.LittleEndian.Uint32(frame[40:])
		if id, offset, ok := parseTrim(frame[frameHeaderBytes : frameHeaderBytes+count]); ok && offset > starts[id] {
			starts[id] = offset
		}
	}
	j.moveStarts(starts, left)
}

// moveStarts makes starts what readers see, and notes it in the start file. Where that has no room, or the journal takes
// nothing any more, the log still says it when it is read the next time. The caller holds wmu.
func (j *Journal) moveStarts(starts map[uint32]int64, left []uint64) {
	if !maps.Equal(starts, j.start.starts) {
		j.start.starts = starts
		if j.writable() == nil {
			if err := j.start.write(); err != nil && !errors.Is(err, ErrDiskFull) {
				_ = j.fail(err) // who writes next is told
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index.trims = append(left, j.index.trims...)
	for id, offset := range starts {
		p := j.index.parts[id]
		if p == nil {
			p = &partition{}
			j.index.parts[id] = p
		}
		p.start = max(p.start, offset)
	}
}
