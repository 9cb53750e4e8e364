package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

const lifeParts = 2

// promises is what must be true of a journal whenever it is opened again.
type promises struct {
	End      [lifeParts]int64 // acknowledged up to here
	Low      [lifeParts]int64 // may have been trimmed up to here
	Vote     uint64           // acknowledged; the next one may be on its way
	Sequence int32            // the idempotent producer's next one, as far as it was acknowledged
	Dup      int64            // where its last acknowledged batch is
	Reset    bool             // the log is being thrown away for another one
	Cutting  bool             // its end is being cut off
}

// life is what a journal goes through, in one goroutine, so that every run of a seed does the same.
type life struct {
	*log
	rng  *rand.Rand
	now  promises
	ever [lifeParts]map[int64][][]byte // whatever was written at an offset; the last one counts
	last [lifeParts]map[int64][]byte   // of those, what was acknowledged
	from []byte                        // the front that the log is started anew behind

	indexed bool              // it keeps indexes of keys and tags
	holds   map[string]recipe // by all that a batch's checksum covers: what is in it
	synced  []uint64          // journal positions at which all before was on stable storage before anything was written behind
}

func newLife(t testing.TB, o storage.Options, rng *rand.Rand) *life {
	l := &life{rng: rng, holds: map[string]recipe{}}
	for p := range lifeParts {
		l.ever[p], l.last[p] = map[int64][][]byte{}, map[int64][]byte{}
	}
	l.log = &log{t: t, opts: o, term: 1}
	return l
}

func (l *life) open() {
	j, err := storage.Open("j", l.opts)
	must(l.t, err)
	l.Journal = j
	if l.indexed {
		j.KeepIndexesByHand(storage.Indexes{Keys: true, Tags: true})
	}
	l.Commit(l.log.last())
}

// live takes so many steps, while going on is wanted.
func (l *life) live(steps int, goOn func() bool) {
	l.open()
	for range steps {
		if !goOn() {
			break
		}
		switch l.rng.Intn(16) {
		case 0:
			l.cutTail()
		case 1, 2:
			l.trim()
		case 3:
			must(l.t, l.SetUint64([]byte("CurrentTerm"), l.now.Vote+1))
			l.now.Vote++
			// So large that a copy of the start file can be torn.
			must(l.t, l.Set([]byte("large"), bytes.Repeat([]byte{byte(l.now.Vote)}, 1200)))
		case 4:
			must(l.t, l.Close())
			l.seen()
			l.open()
		case 5:
			must(l.t, l.Flush())
			l.seen()
		case 6:
			must(l.t, l.StoreLog(&raft.Log{Index: l.next(), Term: l.term, Type: raft.LogNoop}))
			l.Commit(l.log.last())
		case 7:
			if l.rng.Intn(4) == 0 {
				l.reset()
			}
		default:
			l.append(1 + l.rng.Intn(3))
		}
		l.noteSynced()
		if l.indexed && l.rng.Intn(2) == 0 {
			l.MakeIndexes()
		}
	}
	_ = l.Close()
}

// noteSynced notes up to where all is on stable storage, and forgets what is not there any more.
func (l *life) noteSynced() {
	end := l.DurableEnd()
	for len(l.synced) > 0 && l.synced[len(l.synced)-1] >= end {
		l.synced = l.synced[:len(l.synced)-1]
	}
	l.synced = append(slices.Clip(l.synced), end)
}

// next is the next raft index.
func (l *life) next() uint64 {
	if last := l.log.last(); last > 0 {
		return last + 1
	}
	return l.Front().Index + 1
}

// seen promises what readers can see: they must not lose it.
func (l *life) seen() {
	for p := range lifeParts {
		_, end := l.Bounds(uint32(p))
		l.now.End[p] = max(l.now.End[p], end)
	}
	if l.opts.Mode == storage.Durable { // else more may be in memory than the journal remembers batches of a producer
		l.now.Sequence, l.now.Dup = l.sequence()
	}
}

// sequence is the producer's next one after all that was committed, and where its last batch is.
func (l *life) sequence() (next int32, last int64) {
	for offset, data := range l.last[0] {
		h, err := storage.ParseHeader(data)
		must(l.t, err)
		if h.ProducerID == 7 && h.BaseSequence+h.Records > next {
			next, last = h.BaseSequence+h.Records, offset
		}
	}
	return next, last
}

// append stores entries with one call of StoreLogs, and commits them.
func (l *life) append(entries int) {
	batches := l.write(entries)
	for _, b := range batches {
		l.last[b.Partition][b.Offset] = bytes.Clone(b.Data)
	}
	l.Commit(l.log.last())
	l.seen()
}

// write stores entries without committing them.
func (l *life) write(entries int) (all []*storage.Batch) {
	var logs []*raft.Log
	sequence, _ := l.sequence()
	inFlight := 4 // more a client does not have
	index := l.next()
	for range entries {
		p := &storage.Proposal{}
		for range 1 + l.rng.Intn(3) {
			b := &storage.Batch{Partition: uint32(l.rng.Intn(lifeParts))}
			spec := batchSpec{values: []string{fmt.Sprint(index, l.rng.Int()) + string(bytes.Repeat([]byte{'v'}, l.rng.Intn(600)))}}
			if l.indexed {
				spec.key, spec.tag, spec.times = fmt.Sprint("k", l.rng.Intn(5)), fmt.Sprint("t", l.rng.Intn(5)), []int64{l.rng.Int63n(1000)}
			}
			if b.Partition == 0 && inFlight > 0 && l.rng.Intn(2) == 0 {
				inFlight--
				spec.producer, spec.sequence = 7, sequence
				sequence++
			}
			b.Data = batch(spec)
			l.holds[string(b.Data[17:])] = recipe{spec.key, spec.tag}
			must(l.t, b.Check())
			p.Batches, all = append(p.Batches, b), append(all, b)
		}
		data, err := l.Propose(p)
		must(l.t, err)
		defer l.Withdraw(p)
		logs = append(logs, &raft.Log{Index: index, Term: l.term, Type: raft.LogCommand, Data: data})
		index++
	}
	for _, b := range all { // a cut in between may leave them, at offsets that follow
		l.expect(b)
	}
	if err := l.StoreLogs(logs); err != nil {
		l.t.Fatal(err)
	}
	for _, b := range all {
		must(l.t, b.Err)
	}
	if l.opts.Mode == storage.Durable {
		l.noteSynced()
	}
	return all
}

// expect notes what is about to be written.
func (l *life) expect(b *storage.Batch) {
	l.ever[b.Partition][-1] = append(l.ever[b.Partition][-1], bytes.Clone(b.Data))
}

// cutTail stores a tail that is not committed, under another term, and cuts it off again.
func (l *life) cutTail() {
	keep := l.next()
	if l.log.last() == 0 {
		return // raft's first entry is never cut
	}
	must(l.t, l.Flush()) // raft cuts only what it never acknowledged
	l.seen()
	l.term += uint64(l.rng.Intn(3))
	for range 1 + l.rng.Intn(3) {
		l.write(1 + l.rng.Intn(3))
		if l.rng.Intn(3) == 0 {
			must(l.t, l.Flush())
		}
	}
	l.now.Cutting = true
	must(l.t, l.DeleteRange(keep, l.log.last()))
	l.now.Cutting = false
}

func (l *life) trim() {
	l.now.Low = l.now.End
	if l.rng.Intn(3) == 0 {
		start, end := l.Bounds(1)
		_, err := l.TrimBefore(1, start+l.rng.Int63n(end-start+1))
		must(l.t, err)
	} else {
		_, err := l.Retain()
		must(l.t, err)
	}
	for p := range lifeParts {
		l.now.Low[p], _ = l.Bounds(uint32(p))
	}
}

// reset starts the log anew behind a front that comes from elsewhere, as on a replica that was away for too long.
func (l *life) reset() {
	o := l.opts
	o.FS = vfs.NewMem()
	other, err := tryOpen(l.t, "other", o)
	must(l.t, err)
	for p := range uint32(lifeParts) {
		_, end := l.Bounds(p)
		for range end + l.rng.Int63n(20) + 1 {
			other.put(p, plain("elsewhere", 1))
		}
	}
	must(l.t, other.Flush())
	other.SetRetention(storage.Retention{Age: 1}) // all of it, so that its front is behind this log
	_, err = other.Retain()
	must(l.t, err)
	l.now.Reset, l.from = true, other.Front().State
	must(l.t, l.Reset(l.from))
	_ = other.Close()
	for p := range lifeParts {
		low, end := l.Bounds(uint32(p))
		l.now.Low[p], l.now.End[p] = low, end
		clear(l.last[p])
	}
	l.now.Reset, l.now.Sequence = false, 0
}

// survives opens a disk after a cut and says which promise is broken. It goes on with it, cuts the power again, and
// opens it again.
func (l *life) survives(disk *vfs.Mem, p promises) error {
	o := l.opts
	o.FS = disk
	after := &log{t: l.t, opts: o, term: l.term}
	open := func() (err error) {
		after.Journal, err = storage.Open("j", o)
		if err == nil {
			after.Commit(after.last())
		}
		return err
	}
	if err := open(); err != nil {
		return err
	}
	defer func() { _ = after.Close() }()
	contents, err := l.check(after, p)
	if err != nil {
		return err
	}
	want, err := l.goOn(after, contents, p)
	if err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	for start, close := range []bool{false, true} { // after another cut, after a stop in order
		if !close {
			o.FS = disk.Crash(nil)
		}
		if err := after.Close(); err != nil {
			return err
		}
		if err := open(); err != nil {
			return fmt.Errorf("start %d: %w", start+2, err)
		}
		for id := range uint32(lifeParts) {
			got, err := after.tryContents(id)
			if err != nil || !bytes.Equal(got, want[id]) {
				return fmt.Errorf("start %d: partition %d holds %v, want %v (%v)", start+2, id, offsets(got), offsets(want[id]), err)
			}
		}
	}
	if err := after.Close(); err != nil {
		return err
	}
	r, err := storage.VerifyFS(o.FS, "j")
	if err != nil {
		return err
	}
	return errors.Join(r.Problems...)
}

// check compares what is served with what was written and promised.
func (l *life) check(after *log, p promises) (contents [lifeParts][]byte, err error) {
	for id := range lifeParts {
		first, end := after.Bounds(uint32(id))
		if !p.Reset && (first > p.Low[id] || end < p.End[id]) {
			return contents, fmt.Errorf("partition %d is %d to %d, promised was %d to %d", id, first, end, p.Low[id], p.End[id])
		}
		all, err := after.tryContents(uint32(id))
		if err != nil {
			return contents, err
		}
		contents[id] = all
		next := int64(-1)
		for rest := all; len(rest) > 0; {
			h, err := storage.ParseHeader(rest)
			if err != nil {
				return contents, err
			}
			data := rest[:h.Size()]
			if next >= 0 && h.BaseOffset != next {
				return contents, fmt.Errorf("partition %d: offset %d where %d should be", id, h.BaseOffset, next)
			}
			if err := l.known(id, h.BaseOffset, data, p); err != nil {
				return contents, err
			}
			next, rest = h.BaseOffset+int64(h.Records), rest[h.Size():]
		}
		if next >= 0 && next != end {
			return contents, fmt.Errorf("partition %d ends at %d, its records at %d", id, end, next)
		}
	}
	vote, err := after.GetUint64([]byte("CurrentTerm"))
	if err != nil || vote < p.Vote || vote > p.Vote+1 {
		return contents, fmt.Errorf("term is %d (%v), acknowledged was %d", vote, err, p.Vote)
	}
	return contents, nil
}

// known says what is wrong with a batch that is served at an offset.
func (l *life) known(id int, offset int64, data []byte, p promises) error {
	if offset < p.End[id] && !p.Reset {
		if want := l.last[id][offset]; !sameBatch(data, want) {
			return fmt.Errorf("partition %d: the batch at %d is another one than was acknowledged", id, offset)
		}
		return nil
	}
	for _, b := range l.ever[id][-1] {
		if sameBatch(b, data) {
			return nil
		}
	}
	return fmt.Errorf("partition %d: the batch at %d was never written", id, offset)
}

// goOn uses a journal after a cut: the producer sends its last batch again and the next one, and others append until
// the segment is full.
func (l *life) goOn(after *log, contents [lifeParts][]byte, p promises) (want [lifeParts][]byte, err error) {
	want = contents
	put := func(id uint32, data []byte) (*storage.Batch, error) {
		b := &storage.Batch{Partition: id, Data: data}
		if err := after.store(b); err != nil || b.Err != nil {
			return b, errors.Join(err, b.Err)
		}
		after.Commit(after.last())
		return b, nil
	}
	if p.Reset { // raft sends it again; until then the log is not for use
		if err := after.Reset(l.from); err != nil {
			return want, err
		}
		want = [lifeParts][]byte{}
	} else if p.Sequence > 0 {
		b, err := put(0, l.last[0][p.Dup])
		if err != nil || b.Offset != p.Dup {
			return want, fmt.Errorf("the producer's last batch again: offset %d, %v; it was %d", b.Offset, err, p.Dup)
		}
	}
	for i := range 4 {
		id := uint32(i % lifeParts)
		_, end := after.Bounds(id)
		if after.opts.ReadDurable {
			must(l.t, after.Flush())
			_, end = after.Bounds(id)
		}
		b, err := put(id, plain(fmt.Sprint("more", i, string(bytes.Repeat([]byte{'w'}, 1000))), 1))
		if err != nil || b.Offset != end {
			return want, fmt.Errorf("the next batch got offset %d, %v; want %d", b.Offset, err, end)
		}
		want[id] = append(bytes.Clone(want[id]), b.Data...)
	}
	return want, after.Flush()
}
