package pipeline

import (
	"context"
	"maps"
)

// sequencer decides in which order a sink gets the records of its partitions, and from
// where to read again after a restart. Not safe for concurrent use.
type sequencer interface {
	// push takes the next record of a partition, in the order of its offsets.
	push(r *incoming) error
	// passed notes that the partition was read up to an offset where there is nothing for
	// the sink (control records, the pieces of a long record).
	passed(p Partition, next int64)
	// advance tells how far the append clock of a partition has come although nothing was
	// read from it.
	advance(p Partition, stamp int64)
	// ended tells that no more is read from a partition in this run.
	ended(p Partition)
	// release hands out what is ready, then tells of the places where output may be cut:
	// boundary is called after each group that belongs together, with the append stamp
	// reached.
	release(ctx context.Context, out releaser) error
	// finish lets everything go: at the end of a bounded input (over), or at the present
	// end of one that will be continued.
	finish(ctx context.Context, over bool, out releaser) error
	// mark returns where to go on once all that was released is durable. It is called
	// only right after release or finish, or in boundary.
	mark() (mark, error)
	// waiting returns the bytes of a partition that are held back because others are
	// behind. The reader stops reading what is far ahead.
	waiting(p Partition) int64
	// held returns what waits, and the watermark; zero where records are not ordered.
	held() (records, bytes, watermark int64)
}

// incoming is a record on its way from the journal to a sink.
type incoming struct {
	Record
	// broken says why the record is not what was appended; then it is a dead letter.
	broken string
	// foreign says that another program appended the record, appendTime that its stamp is
	// that of the journal all the same.
	foreign, appendTime bool
}

// releaser takes what a sequencer lets go.
type releaser interface {
	deliver(ctx context.Context, r released) error
	boundary(ctx context.Context, stamp int64) error
}

// released is a record on its way to the sink, or to the side.
type released struct {
	record *incoming
	late   bool // into the main output, behind its time
	// side is why the record does not go to the sink; empty where it does.
	side string
	// watermark and lateness say by how much it was late; µs.
	watermark, lateness int64
}

// unordered lets records go as they come.
type unordered struct {
	ready   []*incoming
	next    map[Partition]int64
	over    map[Partition]int64 // passed over behind what is ready
	highest int64
	told    int64               // highest at the last boundary
	stamps  map[Partition]int64 // by partition, records and frontiers
}

func newUnordered(from map[Partition]int64) *unordered {
	u := &unordered{next: map[Partition]int64{}, over: map[Partition]int64{}, stamps: map[Partition]int64{}}
	for p, o := range from {
		u.next[p] = o
	}
	return u
}

func (u *unordered) push(r *incoming) error {
	u.ready = append(u.ready, r)
	return nil
}

// passed waits for the records before it, which release delivers.
func (u *unordered) passed(p Partition, next int64) { u.over[p] = next }

func (u *unordered) advance(p Partition, stamp int64) {
	u.stamps[p] = max(u.stamps[p], stamp)
	if len(u.stamps) < len(u.next) {
		return
	}
	least := stamp
	for _, s := range u.stamps {
		least = min(least, s)
	}
	u.highest = max(u.highest, least)
}

func (u *unordered) ended(Partition) {}

func (u *unordered) release(ctx context.Context, out releaser) error {
	for i, r := range u.ready {
		if err := out.deliver(ctx, released{record: r}); err != nil {
			return err
		}
		p := r.partition()
		u.next[p] = r.Offset + 1
		u.highest = max(u.highest, r.Stamp)
		u.told = u.highest
		u.stamps[p] = max(u.stamps[p], r.Stamp)
		u.ready[i] = nil
		if err := out.boundary(ctx, u.highest); err != nil {
			u.ready = u.ready[i+1:]
			return err
		}
	}
	u.ready = u.ready[:0]
	for p, next := range u.over {
		u.next[p] = max(u.next[p], next)
	}
	clear(u.over)
	if u.highest == u.told {
		return nil
	}
	u.told = u.highest // time has passed and nothing else
	return out.boundary(ctx, u.highest)
}

func (u *unordered) finish(ctx context.Context, _ bool, out releaser) error {
	return u.release(ctx, out)
}

func (u *unordered) mark() (mark, error) { return mark{offsets: maps.Clone(u.next)}, nil }

func (u *unordered) waiting(Partition) int64 { return 0 }

func (u *unordered) held() (records, bytes, watermark int64) { return 0, 0, 0 }
