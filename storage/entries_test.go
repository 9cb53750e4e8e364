package storage_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

func pid() int { return os.Getpid() }

// recrc gives an edited batch a good checksum.
func recrc(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// putMany stores each batch as an entry of its own, all in one StoreLogs, and commits them.
func (l *log) putMany(partition uint32, data ...[]byte) {
	l.t.Helper()
	var entries []*raft.Log
	var proposals []*storage.Proposal
	for i, d := range data {
		b := &storage.Batch{Partition: partition, Data: d}
		if err := b.Check(); err != nil {
			l.t.Fatal(err)
		}
		p := &storage.Proposal{Batches: []*storage.Batch{b}}
		proposals = append(proposals, p)
		data, err := l.Propose(p)
		if err != nil {
			l.t.Fatal(err)
		}
		entries = append(entries, &raft.Log{Index: l.last() + 1 + uint64(i), Term: l.term, Type: raft.LogCommand, Data: data})
	}
	if err := l.StoreLogs(entries); err != nil {
		l.t.Fatalf("storing: %v", err)
	}
	for _, p := range proposals {
		l.Withdraw(p)
	}
	l.Commit(l.last())
}

// verifyClean checks a directory with Verify.
func verifyClean(t testing.TB, dir string) {
	t.Helper()
	r, err := storage.Verify(dir)
	if err != nil {
		t.Fatalf("verifying %s: %v", dir, err)
	}
	for _, p := range r.Problems {
		t.Errorf("verifying %s: %v", dir, p)
	}
}

// reseal gives an edited frame header and directory of n bytes a good checksum.
func reseal(frame []byte, n int) {
	sum := crc32.Update(crc32.Checksum(frame[12:52], castagnoli), castagnoli, make([]byte, 4))
	binary.LittleEndian.PutUint32(frame[8:], crc32.Update(sum, castagnoli, frame[56:n]))
}

// openCommands opens a command log of n entries.
func openCommands(t testing.TB, n uint64) *log {
	t.Helper()
	l := openLog(t, t.TempDir(), storage.Options{Commands: true, SegmentBytes: 4 << 10})
	for i := range n {
		must(t, l.storeCommand(i+1))
	}
	return l
}

func (l *log) storeCommand(i uint64) error {
	return l.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: fmt.Appendf(nil, "command %d", i)})
}

// command says whether entry i is there, and what it was.
func (l *log) command(i uint64) error {
	var got raft.Log
	if err := l.GetLog(i, &got); err != nil {
		return err
	}
	if want := fmt.Sprintf("command %d", i); string(got.Data) != want {
		return fmt.Errorf("entry %d: got %q, want %q", i, got.Data, want)
	}
	return nil
}

func isCorrupt(err error) bool { return errors.Is(err, storage.ErrCorruptBatch) }

// A disk that had said "synced" without doing so is found out by the start file, which knows what was deleted in front.
func TestALogThatEndsBeforeItsFirstEntryIsDamaged(t *testing.T) {
	t.Parallel()
	l := openCommands(t, 10)
	end := int64(l.End().Position)
	for i := range uint64(3) {
		must(t, l.storeCommand(11+i))
	}
	must(t, l.DeleteRange(1, 11))
	dir := l.crash()
	must(t, os.Remove(filepath.Join(dir, "mark")))
	must(t, os.Truncate(filepath.Join(dir, files(t, dir, ".seg")[0]), end))
	_, err := storage.Open(dir, l.opts)
	var d *storage.DamageError
	if !errors.As(err, &d) || !strings.Contains(d.Reason, "ends with entry 10, and began with entry 12") {
		t.Errorf("got %v, want a DamageError", err)
	}
	report, err := storage.Verify(dir)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Error(), "began with entry 12") {
		t.Errorf("verify says %+v, %v; want the same", report, err)
	}
}
