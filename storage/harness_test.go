package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/daybook-data/daybook/storage"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batchSpec describes a record batch to encode.
type batchSpec struct {
	times    []int64 // of the records, ms
	key, tag string  // of all records; none if empty
	values   []string
	codec    storage.Compression
	producer int64
	epoch    int16
	sequence int32
	txn      bool
	appendAt int64 // LogAppendTime if not 0
}

// batch encodes a record batch, version 2, as a client would.
func batch(s batchSpec) []byte {
	if len(s.times) == 0 {
		s.times = make([]int64, len(s.values))
		for i := range s.times {
			s.times[i] = 1000
		}
	}
	var records []byte
	for i, ts := range s.times {
		value := ""
		if i < len(s.values) {
			value = s.values[i]
		}
		r := []byte{0}
		r = binary.AppendVarint(r, ts-s.times[0])
		r = binary.AppendVarint(r, int64(i))
		if s.key == "" {
			r = binary.AppendVarint(r, -1)
		} else {
			r = append(binary.AppendVarint(r, int64(len(s.key))), s.key...)
		}
		r = append(binary.AppendVarint(r, int64(len(value))), value...)
		if s.tag == "" {
			r = binary.AppendVarint(r, 0)
		} else {
			r = append(binary.AppendVarint(binary.AppendVarint(r, 1), int64(len(storage.TagHeader))), storage.TagHeader...)
			r = append(binary.AppendVarint(r, int64(len(s.tag))), s.tag...)
		}
		records = append(binary.AppendVarint(records, int64(len(r))), r...)
	}
	records = pack(s.codec, records)
	be := binary.BigEndian
	b := make([]byte, 61, 61+len(records))
	b = append(b, records...)
	be.PutUint32(b[8:], uint32(len(b)-12))
	be.PutUint32(b[12:], 0xffffffff)
	b[16] = 2
	attributes := uint16(s.codec)
	if s.txn {
		attributes |= 16
	}
	if s.producer == 0 {
		s.producer, s.epoch, s.sequence = -1, -1, -1
	}
	be.PutUint16(b[21:], attributes)
	be.PutUint32(b[23:], uint32(len(s.times)-1))
	be.PutUint64(b[27:], uint64(s.times[0]))
	be.PutUint64(b[35:], uint64(slices.Max(s.times)))
	be.PutUint64(b[43:], uint64(s.producer))
	be.PutUint16(b[51:], uint16(s.epoch))
	be.PutUint32(b[53:], uint32(s.sequence))
	be.PutUint32(b[57:], uint32(len(s.times)))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	if s.appendAt != 0 {
		storage.SetLogAppendTime(b, s.appendAt)
	}
	return b
}

func pack(c storage.Compression, plain []byte) []byte {
	var buf bytes.Buffer
	switch c {
	case storage.None:
		return plain
	case storage.Gzip:
		w := gzip.NewWriter(&buf)
		_, _ = w.Write(plain)
		_ = w.Close()
	case storage.LZ4:
		w := lz4.NewWriter(&buf)
		_, _ = w.Write(plain)
		_ = w.Close()
	case storage.Zstd:
		w, _ := zstd.NewWriter(&buf)
		_, _ = w.Write(plain)
		_ = w.Close()
	case storage.Snappy: // the framing of the Java client, in blocks of 50 bytes
		buf.Write([]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1})
		for chunk := range slices.Chunk(plain, 50) {
			b := s2.EncodeSnappy(nil, chunk)
			_ = binary.Write(&buf, binary.BigEndian, uint32(len(b)))
			buf.Write(b)
		}
	}
	return buf.Bytes()
}

// plain is a batch of n records that say what they are.
func plain(tag string, n int) []byte {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%s-%d", tag, i)
	}
	return batch(batchSpec{values: values})
}

// log drives a journal the way raft does.
type log struct {
	t    testing.TB
	dir  string
	opts storage.Options
	*storage.Journal
	term uint64
}

// openLog opens a journal that the test closes.
func openLog(t testing.TB, dir string, o storage.Options) *log {
	t.Helper()
	l, err := tryOpen(t, dir, o)
	if err != nil {
		t.Fatalf("opening %s: %v", dir, err)
	}
	return l
}

func tryOpen(t testing.TB, dir string, o storage.Options) (*log, error) {
	j, err := storage.Open(dir, o)
	if err != nil {
		return nil, err
	}
	l := &log{t: t, dir: dir, opts: o, Journal: j, term: 1}
	t.Cleanup(func() { _ = j.Close() })
	l.Commit(l.last())
	return l, nil
}

func (l *log) last() uint64 {
	i, err := l.LastIndex()
	if err != nil {
		l.t.Fatal(err)
	}
	return i
}

// crash leaves the journal as a killed process does: nothing is flushed, nothing is closed in order. The files are
// copied, as the open journal still holds the lock.
func (l *log) crash() string {
	l.t.Helper()
	dir := l.t.TempDir()
	copyDir(l.t, l.dir, dir)
	return dir
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// store appends the batches as one raft entry each call, without committing it.
func (l *log) store(batches ...*storage.Batch) error {
	for _, b := range batches {
		if err := b.Check(); err != nil {
			return err
		}
	}
	p := &storage.Proposal{Batches: batches}
	data, err := l.Propose(p)
	if err != nil {
		return err
	}
	defer l.Withdraw(p)
	last := l.last()
	if last == 0 {
		last = l.Front().Index
	}
	entry := &raft.Log{Index: last + 1, Term: l.term, Type: raft.LogCommand, Data: data}
	return l.StoreLogs([]*raft.Log{entry})
}

// put stores and commits batches of one partition as one entry, and returns their base offsets.
func (l *log) put(partition uint32, data ...[]byte) []int64 {
	l.t.Helper()
	batches := make([]*storage.Batch, len(data))
	for i, d := range data {
		batches[i] = &storage.Batch{Partition: partition, Data: d}
	}
	if err := l.store(batches...); err != nil {
		l.t.Fatalf("storing: %v", err)
	}
	l.Commit(l.last())
	offsets := make([]int64, len(batches))
	for i, b := range batches {
		if b.Err != nil {
			l.t.Fatalf("batch %d: %v", i, b.Err)
		}
		offsets[i] = b.Offset
	}
	return offsets
}

// noop stores raft's own kind of entry.
func (l *log) noop() {
	l.t.Helper()
	if err := l.StoreLog(&raft.Log{Index: l.last() + 1, Term: l.term, Type: raft.LogNoop}); err != nil {
		l.t.Fatalf("storing a noop: %v", err)
	}
	l.Commit(l.last())
}

// contents reads a partition from its start to its end in small steps.
func (l *log) contents(partition uint32) []byte {
	l.t.Helper()
	b, err := l.tryContents(partition)
	if err != nil {
		l.t.Fatalf("reading partition %d: %v", partition, err)
	}
	return b
}

func (l *log) tryContents(partition uint32) ([]byte, error) {
	start, end := l.Bounds(partition)
	var all []byte
	for offset := start; offset < end; {
		c, err := l.Read(partition, offset, 700, -1)
		if err != nil {
			return all, err
		}
		if c.Next <= offset {
			return all, fmt.Errorf("read at %d of %d does not move on", offset, end)
		}
		for _, p := range c.Pieces {
			all = append(all, p...)
		}
		offset = c.Next
		c.Release()
	}
	return all, nil
}

// offsets are the base offsets of the batches in data.
func offsets(data []byte) []int64 {
	var all []int64
	for len(data) > 0 {
		h, err := storage.ParseHeader(data)
		if err != nil {
			return append(all, -1)
		}
		all = append(all, h.BaseOffset)
		data = data[h.Size():]
	}
	return all
}

// files returns the names in a directory with a suffix, sorted.
func files(t testing.TB, dir, suffix string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// clock is a clock that tests move.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Unix(1_700_000_000, 0)} }

func (c *clock) Now() time.Time { return c.now }

func isDamage(err error) bool {
	var d *storage.DamageError
	return errors.As(err, &d)
}
