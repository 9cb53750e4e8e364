package storage

import (
	"encoding/binary"
	"sync"

	"github.com/hashicorp/raft"
)

// Batch is one record batch on its way into the journal.
type Batch struct {
	// Partition is the number of the partition within the journal. Numbers are given out by whoever owns the metadata
	// and never used again.
	Partition uint32
	// Data is one record batch, version 2. It is stored as it is, but for the base offset and leader epoch, which are
	// written into it. It belongs to the journal until the append is over.
	Data []byte
	// Marker says that Data is a transaction marker made by ControlBatch; other control batches are refused.
	Marker bool
	// Began, if not 0, says of a transactional batch that its transaction was open in this partition when decision Began
	// was the last one of its producer's coordinators. It is refused with ErrTxnState behind the marker of a later one.
	Began int32
	// FromZero says that the producer numbers the batches of each of its transactions from 0, as it does where every end of
	// one raises its epoch. If it is not known in the partition, the first batch has to be that one: another means that the
	// first is still to come.
	FromZero bool

	// Results, valid when the append is over.

	Offset    int64 // base offset; of a duplicate that of the original
	Stamp     int64 // leader's time of the append, µs
	Duplicate bool  // the batch had been stored before and was not stored again
	Err       error // why it was refused; nil if it is stored

	header  Header
	checked bool
}

// Check parses and checks the batch, which must be done before it is proposed. The result is also in Err; a second call
// returns it again.
func (b *Batch) Check() error {
	if b.checked {
		return b.Err
	}
	b.checked = true
	b.header, b.Err = checkBatch(b.Data)
	if !b.Marker {
		b.header.Decision = b.Began
	}
	if b.Err == nil && b.header.Control() != b.Marker {
		b.Err = ErrInvalidBatch
	}
	return b.Err
}

// Proposal is what becomes one raft entry: batches in the order in which they get their offsets.
type Proposal struct {
	Batches  []*Batch
	bytes    int64
	reserved int64
	handle   uint64
}

// proposalPrefix starts the data of a raft entry that stands for a proposal of this process; the handle follows.
const proposalPrefix = 0x31504244 // "DBP1"

// proposals are those that raft holds, by handle: the raft entry carries the handle alone, and StoreLogs writes the
// producers' own buffers.
type proposals struct {
	mu   sync.RWMutex
	next uint64
	held map[uint64]*Proposal
}

// Propose takes disk space for checked batches and returns the data of the raft entry that stands for them. It fails with
// ErrDiskFull or ErrNoFiles if there is none; then nothing happened. The proposal must be given up by Withdraw when raft has answered.
func (j *Journal) Propose(p *Proposal) (data []byte, err error) {
	p.bytes = 0
	for _, b := range p.Batches {
		p.bytes += int64(len(b.Data))
	}
	p.reserved = frameBytes(len(p.Batches), p.bytes)
	if err := j.Reserve(p.reserved); err != nil {
		return nil, err
	}
	ps := &j.proposals
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.next++
	p.handle = ps.next
	if ps.held == nil {
		ps.held = map[uint64]*Proposal{}
	}
	ps.held[p.handle] = p
	data = binary.LittleEndian.AppendUint32(make([]byte, 0, 12), proposalPrefix)
	return binary.LittleEndian.AppendUint64(data, p.handle), nil
}

// Withdraw forgets a proposal and gives back the space it reserved.
func (j *Journal) Withdraw(p *Proposal) {
	j.Unreserve(p.reserved)
	j.proposals.mu.Lock()
	defer j.proposals.mu.Unlock()
	delete(j.proposals.held, p.handle)
}

// get returns the proposal that a raft entry stands for, or nil.
func (ps *proposals) get(l *raft.Log) *Proposal {
	if l.Type != raft.LogCommand || len(l.Data) != 12 || binary.LittleEndian.Uint32(l.Data) != proposalPrefix {
		return nil
	}
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.held[binary.LittleEndian.Uint64(l.Data[4:])]
}
