package storage

import (
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// buildFrame makes the frame of one raft entry and moves the tail behind it.
func (j *Journal) buildFrame(l *raft.Log) error {
	if j.tail.index != 0 && l.Index != j.tail.index+1 {
		return fmt.Errorf("raft index %d follows %d", l.Index, j.tail.index)
	}
	if l.Term > maxLeaderTerm {
		return fmt.Errorf("term %d is out of range", l.Term)
	}
	switch p := j.proposals.get(l); {
	case len(l.Extensions) > 0:
		return j.buildReceived(l)
	case p != nil:
		j.buildBatches(l, p)
		return nil
	}
	typ, ok := frameTypeOf(l.Type)
	if _, _, trim := parseTrim(l.Data); !ok || typ == frameCommand && !j.o.Commands && !trim {
		return fmt.Errorf("raft entry %d of type %v is no proposal of this process", l.Index, l.Type)
	}
	j.buildOpaque(l, typ)
	return nil
}

// header starts a frame behind the tail.
func (j *Journal) header(l *raft.Log, typ frameType) frameHeader {
	h := frameHeader{
		typ: typ, index: l.Index, term: l.Term, position: j.tail.pos, prevCRC: j.tail.crc,
		stamp: max(j.tail.stamp, j.o.Now().UnixMicro()),
	}
	if l.Index == 1 && typ == frameConfig {
		h.stamp = 0 // each member writes the group's first entry itself, and the frames must be the same
	}
	return h
}

// buildOpaque makes a frame with a payload that is not looked into.
func (j *Journal) buildOpaque(l *raft.Log, typ frameType) {
	h := j.header(l, typ)
	h.count, h.payloadCRC = uint32(len(l.Data)), crc32.Checksum(l.Data, castagnoli)
	h.length = uint32(aligned(frameHeaderBytes + len(l.Data)))
	head := j.app.head(frameHeaderBytes)
	h.put(head)
	putNote(head, h.position, j.durable.Load())
	j.app.buffers = append(j.app.buffers, head, l.Data, j.app.head(int(h.length)-frameHeaderBytes-len(l.Data)))
	j.finish(h, l.Data)
}

// buildBatches makes the frame of a proposal: here, and only here, batches get their offsets. Duplicates and batches
// that break their producer's sequence are answered and left out.
func (j *Journal) buildBatches(l *raft.Log, p *Proposal) {
	a := &j.app
	h := j.header(l, frameBatches)
	head := a.head(frameHeaderBytes + len(p.Batches)*dirEntryBytes)
	slot := len(a.buffers)
	a.buffers = append(a.buffers, head)
	firstStaged := len(a.staged)
	bytes := 0
	for _, b := range p.Batches {
		b.Stamp = h.stamp
		offset, dup, err := j.tail.check(b)
		if err != nil || dup {
			b.Offset, b.Duplicate, b.Err = offset, dup, err
			continue
		}
		base := j.tail.next[b.Partition]
		stamp(b.Data, base, uint32(l.Term))
		b.Offset = base
		d := dirEntry{
			partition: b.Partition, length: uint32(len(b.Data)), baseOffset: base,
			records: uint32(b.header.Records), crc: b.header.CRC, maxTimestamp: b.header.MaxTimestamp,
		}
		d.put(head[frameHeaderBytes+int(h.count)*dirEntryBytes:])
		h.count++
		event := j.tail.addBatch(b.Partition, b.header, base, h.stamp, b.Data)
		a.staged = append(a.staged, stagedBatch{
			partition: b.Partition, at: uint32(bytes), length: uint32(len(b.Data)),
			offset: base, next: base + int64(b.header.Records), maxTimestamp: b.header.MaxTimestamp, event: event,
		})
		a.buffers = append(a.buffers, b.Data)
		bytes += len(b.Data)
	}
	bodyAt := frameHeaderBytes + h.dirBytes()
	for i := range a.staged[firstStaged:] {
		a.staged[firstStaged+i].at += uint32(bodyAt)
	}
	h.length = uint32(aligned(bodyAt + bytes))
	h.put(head)
	putNote(head, h.position, j.durable.Load())
	a.buffers[slot] = head[:bodyAt]
	a.buffers = append(a.buffers, a.head(int(h.length)-bodyAt-bytes))
	j.finish(h, nil)
}

// buildReceived checks that a frame that the leader sent belongs here, and takes it as it is, with a note of its own. Its
// checksums were checked by checkReceived.
func (j *Journal) buildReceived(l *raft.Log) error {
	frame := l.Extensions
	h, ok := parseFrameHeader(frame, j.tail.pos)
	end := End{j.tail.index, j.tail.pos}
	switch {
	case !ok || int(h.length) != len(frame):
		return &DivergedError{At: end, Reason: fmt.Sprintf("its next frame, of raft entry %d, is for another position", l.Index)}
	case h.index != l.Index || h.term != l.Term:
		return fmt.Errorf("frame of raft entry %d in term %d says it is %d in term %d", l.Index, l.Term, h.index, h.term)
	}
	if typ, ok := frameTypeOf(l.Type); !ok || typ != h.typ && (typ != frameCommand || h.typ != frameBatches || j.o.Commands) {
		return fmt.Errorf("raft entry %d is %v, its frame is %v", l.Index, l.Type, h.typ)
	}
	reason := j.tail.links(&h)
	if reason == "" {
		reason = denseOffsets(frame, &h, j.tail)
	}
	if reason != "" {
		return &DivergedError{At: end, Reason: fmt.Sprintf("its next frame, of raft entry %d, does not fit: %s", l.Index, reason)}
	}
	head := j.app.head(frameHeaderBytes)
	copy(head, frame)
	putNote(head, h.position, j.durable.Load())
	j.app.buffers = append(j.app.buffers, head, frame[frameHeaderBytes:])
	at := frameHeaderBytes + h.dirBytes()
	if h.typ != frameBatches {
		j.finish(h, frame[at:at+int(h.count)])
		return nil
	}
	for i := range int(h.count) {
		d := entryAt(frame, i)
		data := frame[at : at+int(d.length)]
		event := j.tail.addBatch(d.partition, parseHeader(data), d.baseOffset, h.stamp, data)
		j.app.staged = append(j.app.staged, stagedBatch{
			partition: d.partition, at: uint32(at), length: d.length,
			offset: d.baseOffset, next: d.baseOffset + int64(d.records), maxTimestamp: d.maxTimestamp, event: event,
		})
		at += int(d.length)
	}
	j.finish(h, nil)
	return nil
}

func (j *Journal) finish(h frameHeader, payload []byte) {
	j.tail.addFrame(&h, payload)
	j.app.frames = append(j.app.frames, builtFrame{header: h, staged: len(j.app.staged)})
}
