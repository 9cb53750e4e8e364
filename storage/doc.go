// Package storage is one journal on one disk: a raft log that is the data.
//
// A [Journal] keeps frames in segment files; a frame is one raft entry and holds any number of Kafka record batches of
// any of the journal's partitions, byte for byte as the producer sent them. It implements hashicorp/raft's LogStore
// and StableStore, so nothing is written twice: StoreLogs on the leader is the one place where order is final, and
// there batches get their offsets and idempotent producers are checked. FORMAT.md draws the files and numbers the
// steps of recovery.
//
// # Promises
//
//   - A batch that StoreLogs returned nil for in the mode Durable survives the loss of power.
//   - Offsets are dense and never change; readers see only what is committed, and never the bytes of another batch.
//   - Bytes that are not what was written are reported as a [DamageError] and never served. A torn tail is cut only
//     beyond the point known to be durable; a whole frame that does not link to the one before it stops the journal.
//   - After a write or sync failed, the journal is read-only for the process: what the disk then holds is not known.
//   - A sync that does not return holds up who waits for it, and no reader.
//   - Without space an append is refused with [ErrDiskFull], without descriptors with [ErrNoFiles], before anything of it was
//     done; the next one that finds space succeeds.
//   - Everything but the segments and the start file is a cache: deleted or garbled, the answers stay the same.
//
// # What is where
//
//   - The bytes: frame.go, note.go, header.go (Kafka's batches), build.go writes them, scan.go and walk.go read them in order.
//   - Appending: proposal.go and space.go before raft, append.go when raft stores, roll.go at a segment's end, prepare.go ahead of
//     it; flush.go, settle.go and mark.go make it durable; cut.go and trims.go take away, retain.go and shed.go remove.
//   - Opening: recover.go and load.go; leftovers.go tells damage from a torn end; startfile.go and mark.go are what is remembered.
//   - Reading: read.go, batchrun.go, chunk.go, view.go and pagecache.go (pages of the file), tail.go, watch.go; raftstore.go and
//     frames.go for raft.
//   - Looking up: times.go, lookup.go, tagread.go, by the indexes of index.go, indexer.go, idxfile.go, keyfile.go, tagfile.go.
//   - Damage: survey.go looks for it, damages.go keeps it, mend.go and mendclosed.go mend it from another copy, repair*.go by hand.
//   - Copies: mirror.go (an observer's), stretch.go (compared), front.go and succeed.go (begun anew), doubt.go and voters.go (what
//     a copy may have forgotten, and when that matters).
//   - From outside, without the lock: peek*.go, dump.go, verify.go.
//
// # Concurrency
//
// All methods of Journal are safe for concurrent use. Locks are taken in this order: Journal.wmu (one writer at a time:
// appends, cuts, trims, the start file; held during I/O), flushMu (one flush, or what destroys frames; held during I/O),
// space.mu (what is allocated; held during I/O), Journal.mu (the index that readers see; never held during I/O). Readers and
// the indexer of keys and tags take segment.indexMu, then indexer.mu, then Journal.mu, never with one of the writer's. The
// mutexes of a segment's view, of its grains and of the Cache are taken last, one at a time.
package storage
