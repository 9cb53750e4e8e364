// Package reorder puts records into event-time order behind a watermark.
//
// A [Buffer] is a pure value: records are pushed in, the append clock is
// advanced, and what the watermark lets go is taken out. There is no goroutine,
// no input or output and no wall clock inside. Its only clock is the append
// stamp J that the journal wrote on each record, so a live run, a replay of the
// same records and a run that crashed and was restored give the same output.
// All times are microseconds UTC, held in an int64.
//
// # How to drive it
//
//	b, err := reorder.New[*rec](reorder.Options{MaxOutOfOrder: 5 * time.Second})
//	p := b.Assign("web.access/0")
//	err = b.Push(reorder.Record[*rec]{Partition: p, Position: 7, Stamp: j, Time: t, Size: n, Payload: r})
//	for group := b.Next(); len(group) > 0; group = b.Next() {
//		// group is in order and valid until the next call on b
//	}
//
// Records are pushed in canonical order (J, partition, position), which [Merge]
// produces from partitions that are read at different speeds. Whenever the input
// has nothing ready, call [Buffer.Advance] with [Merge.Frontier] (so that silence
// can release what waits), then [Buffer.Settle], and drain Next. To save state:
// Settle, drain Next, call [Buffer.Checkpoint], and store the result together
// with, or after, everything that was drained.
//
// # The rules
//
// Clock and input order (C1). The append clock is the running maximum of the
// stamps pushed and of the frontiers given to Advance. Timers that fall between
// two values of the clock run in the order of their due times, so it makes no
// difference how often, or whether, Advance was called.
//
// Order of the output (C2). Main records leave in the total order (order time,
// source name, partition name, position).
//
// Order time t (C3). With [OrderEvent] t is the event time. With [OrderSource] it
// is the maximum of the event time and every earlier t of the same source: the
// source's own order is never changed, sources are interleaved by time.
//
// Watermark (C4). M[s] is the greatest event time accepted from source s. The
// watermark W is the greatest value so far of min(M[s]) - B over the live sources;
// it never falls. Records with t < W are released, records that arrive with
// t < W are late, and ties at W stay open, so that a record exactly B behind is
// on time. An assigned partition is live with M = -inf until its first record or
// until it is idle. A named producer inside a partition joins with its first
// plausible record.
//
// Idle (C5). A source from which nothing plausible came for IdleAfter of append
// time leaves the minimum. When all are idle W becomes the greatest M + 1,
// everything is released, and W stays there.
//
// Implausible stamps (C6). A time above J + FutureLimit or below J - PastLimit
// never enters M and does not keep its source live. It goes to the quarantine
// ([Side]) or is given a place of its own ([Clamp], flag [Clamped]): t = J with
// OrderEvent; with OrderSource the place right behind its predecessor. A clamped
// record never moves W: one that has to leave early (hold, all idle) leaves at
// W - 1.
//
// Late (C7). Late records come out at once as kind [Late] with the watermark they
// missed, or within the main output with the flag [Passed], or are dropped, always
// counted.
//
// Bounds (C8). No record waits more than Hold of append time, and no more than
// CapBytes (64 bytes a record and its size) are held: W is raised to t + 1 of the
// oldest record (hold) or of the lowest (cap), and what that released carries
// [Forced].
//
// Checkpoint (C9). Its size depends on the number of sources, not of records:
// nothing held is saved. A reader starts again from [PartitionState.Low] and
// pushes everything from there; the restored buffer takes back what was held and
// skips the rest.
//
// End, stop, switch (C11). [Buffer.End] flushes a bounded input. A stop or a
// rebalance flushes nothing: take a checkpoint. [Buffer.Bypass] flushes in order
// and passes everything through from then on.
//
// # What a record waits
//
// B + (delay of the slowest live source) - its own delay, and at most one slot
// more ([Options.Slot], 4 ms at B = 3 s) until the next Settle.
//
// # Speed and memory
//
// Records lie in a calendar: a ring of time slots about B/700 wide, each a chain
// of 32-record chunks from one pool. A slot that stayed in order is handed out in
// place; any other is sorted once, when it is released, by one counting pass.
// Stamps beyond the ring go to a heap of 24-byte keys. In the steady state nothing
// is allocated. A held record costs 56 bytes with an 8-byte payload.
//
// If P holds Go pointers the collector scans the calendar; a P without pointers
// (an index into a slab of the caller's) spares that, about a tenth of the cost at
// 1.5 million held records.
package reorder
