package storage_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/storage"
)

// keyed is a record with a key, a value and headers, for encoding.
type keyed struct {
	key, value string
	headers    [][2]string
}

// keyedBatch encodes records with keys as one batch.
func keyedBatch(codec storage.Compression, records ...keyed) []byte {
	var plain []byte
	for i, k := range records {
		r := []byte{0}
		r = binary.AppendVarint(r, 0)
		r = binary.AppendVarint(r, int64(i))
		if k.key == "" {
			r = binary.AppendVarint(r, -1)
		} else {
			r = append(binary.AppendVarint(r, int64(len(k.key))), k.key...)
		}
		r = append(binary.AppendVarint(r, int64(len(k.value))), k.value...)
		r = binary.AppendVarint(r, int64(len(k.headers)))
		for _, h := range k.headers {
			r = append(binary.AppendVarint(r, int64(len(h[0]))), h[0]...)
			r = append(binary.AppendVarint(r, int64(len(h[1]))), h[1]...)
		}
		plain = append(binary.AppendVarint(plain, int64(len(r))), r...)
	}
	b := batch(batchSpec{times: make([]int64, len(records)), codec: codec})
	return sealBatch(append(b[:61], pack(codec, plain)...))
}

// eventually waits until ok is true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// found lists what Find returns for a key.
func found(t testing.TB, l *log, key string, newestFirst bool) []string {
	t.Helper()
	var all []string
	for r, err := range l.Find([]byte(key), newestFirst) {
		if err != nil {
			t.Fatalf("finding %s: %v", key, err)
		}
		all = append(all, fmt.Sprintf("%d/%d %s", r.Partition, r.Offset, r.Value))
	}
	return all
}

// keyLog is a journal with a random history of keys, and what each key's history is.
type keyLog struct {
	*log
	history map[string][]string
}

func newKeyLog(t testing.TB, seed int64, segment int64, rounds int) *keyLog {
	l := openLog(t, t.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: segment})
	l.KeepIndexes(storage.Indexes{Keys: true, Tags: true})
	k := &keyLog{log: l, history: map[string][]string{}}
	k.append(t, rand.New(rand.NewSource(seed)), rounds)
	return k
}

func (k *keyLog) append(t testing.TB, rng *rand.Rand, rounds int) {
	for range rounds {
		p := uint32(rng.Intn(3))
		records := make([]keyed, 1+rng.Intn(6))
		for i := range records {
			records[i] = keyed{key: fmt.Sprint("key-", rng.Intn(15)), value: fmt.Sprint(rng.Int63(), strings.Repeat("x", rng.Intn(200)))}
		}
		codec := storage.None
		if rng.Intn(10) == 0 { // their writers take long to make, with the race detector above all
			codec = storage.Compression(1 + rng.Intn(4))
		}
		base := k.put(p, keyedBatch(codec, records...))[0]
		for i, r := range records {
			k.history[r.key] = append(k.history[r.key], fmt.Sprintf("%d/%d %s", p, base+int64(i), r.value))
		}
	}
}

func (k *keyLog) check(t testing.TB) {
	t.Helper()
	for i := range 17 { // two of them never were
		key := fmt.Sprint("key-", i)
		want := k.history[key]
		if diff := cmp.Diff(want, found(t, k.log, key, false)); diff != "" {
			t.Fatalf("history of %s (-want +got):\n%s", key, diff)
		}
		var newest []string
		for i := len(want) - 1; i >= 0; i-- {
			newest = append(newest, want[i])
		}
		if diff := cmp.Diff(newest, found(t, k.log, key, true)); diff != "" {
			t.Fatalf("history of %s, newest first (-want +got):\n%s", key, diff)
		}
	}
}

func (k *keyLog) reopen(t testing.TB) {
	t.Helper()
	must(t, k.Close())
	k.log = openLog(t, k.dir, k.opts)
	k.KeepIndexes(storage.Indexes{Keys: true, Tags: true})
}

// A key's records are found in all segments, the open one too, in order, by every codec; after a restart as well.
func TestTheRecordsOfAKeyAreFound(t *testing.T) {
	t.Parallel()
	for seed := range int64(3) {
		k := newKeyLog(t, seed, 16<<10, 150)
		k.check(t)
		k.reopen(t)
		k.check(t)
		k.append(t, rand.New(rand.NewSource(seed+100)), 50)
		k.check(t)
	}
}

// Index files are caches: deleted, cut short or garbled, the answers stay the same, and the files are made anew.
func TestLookupsDoNotDependOnTheirFiles(t *testing.T) {
	t.Parallel()
	k := newKeyLog(t, 1, 8<<10, 120)
	rng := rand.New(rand.NewSource(7))
	spoil := map[string]func(path string){
		"deleted":   func(path string) { must(t, os.Remove(path)) },
		"truncated": func(path string) { must(t, os.Truncate(path, rng.Int63n(size(t, path)))) },
		"garbled": func(path string) {
			b, err := os.ReadFile(path)
			must(t, err)
			b[rng.Intn(len(b))] ^= byte(1 + rng.Intn(255))
			must(t, os.WriteFile(path, b, 0o644))
		},
	}
	for name, f := range spoil {
		for _, restart := range []bool{false, true} {
			k.check(t)
			all := files(t, k.dir, ".kix")
			if len(all) < 5 {
				t.Fatalf("there are only %d key index files", len(all))
			}
			for _, file := range all {
				f(filepath.Join(k.dir, file))
			}
			if restart {
				k.reopen(t)
			}
			k.check(t)
			if again := files(t, k.dir, ".kix"); len(again) < len(all) {
				t.Errorf("%s: %d of %d files were made anew", name, len(again), len(all))
			}
		}
	}
}

func size(t testing.TB, path string) int64 {
	st, err := os.Stat(path)
	must(t, err)
	return st.Size()
}

// The files of an index go with their segment, and what an interruption left goes at the next start.
func TestIndexFilesGoWithTheirSegments(t *testing.T) {
	t.Parallel()
	k := newKeyLog(t, 1, 16<<10, 300)
	k.check(t)
	eventually(t, "the tag index of every segment", func() bool {
		return len(files(t, k.dir, ".tix")) == len(files(t, k.dir, ".seg"))-1
	})
	k.SetRetention(storage.Retention{Bytes: 40 << 10})
	if n, err := k.Retain(); err != nil || n == 0 {
		t.Fatalf("removed %d segments: %v", n, err)
	}
	for _, suffix := range []string{".kix", ".tix", ".idx"} {
		if n, segs := len(files(t, k.dir, suffix)), len(files(t, k.dir, ".seg")); n > segs {
			t.Errorf("%d files %s for %d segments", n, suffix, segs)
		}
	}
	must(t, k.Close())
	stray := filepath.Join(k.dir, fmt.Sprintf("%020d.kix", 7))
	must(t, os.WriteFile(stray, nil, 0o644))
	k.log = openLog(t, k.dir, k.opts)
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an index file without its segment is still there: %v", err)
	}
}

// What cannot be read is an error, not an answer without it.
func TestALookupOverDamageSaysSo(t *testing.T) {
	t.Parallel()
	k := newKeyLog(t, 1, 16<<10, 100)
	must(t, k.Close())
	for _, f := range files(t, k.dir, ".kix") {
		must(t, os.Remove(filepath.Join(k.dir, f)))
	}
	path := filepath.Join(k.dir, files(t, k.dir, ".seg")[0])
	b, err := os.ReadFile(path)
	must(t, err)
	b[5000] ^= 1
	must(t, os.WriteFile(path, b, 0o644))
	k.log = openLog(t, k.dir, k.opts)
	k.KeepIndexes(storage.Indexes{Keys: true})
	var last error
	for _, err := range k.Find([]byte("key-1"), false) {
		last = err
	}
	if !isDamage(last) {
		t.Errorf("a lookup over a damaged segment ends with %v, want damage", last)
	}
}

// Records of transactions that were aborted or are open are not found.
func TestLookupsSeeCommittedRecordsOnly(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.KeepIndexes(storage.Indexes{Keys: true})
	txn := func(producer int64, sequence uint32, value string) []byte {
		b := keyedBatch(storage.None, keyed{key: "k", value: value})
		binary.BigEndian.PutUint16(b[21:], 16)
		binary.BigEndian.PutUint64(b[43:], uint64(producer))
		binary.BigEndian.PutUint16(b[51:], 0)
		binary.BigEndian.PutUint32(b[53:], sequence)
		return sealBatch(b)
	}
	end := func(producer int64, commit bool) {
		b := &storage.Batch{Partition: 0, Marker: true, Data: storage.ControlBatch(producer, 0, 0, commit, 1)}
		must(t, l.store(b))
		must(t, b.Err)
		l.Commit(l.last())
	}
	l.put(0, txn(1, 0, "aborted"))
	end(1, false)
	l.put(0, txn(2, 0, "committed"))
	end(2, true)
	l.put(0, keyedBatch(storage.None, keyed{key: "k", value: "plain"}))
	l.put(0, txn(3, 0, "open"))
	if diff := cmp.Diff([]string{"0/2 committed", "0/4 plain"}, found(t, l, "k", false)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	end(3, true)
	if diff := cmp.Diff([]string{"0/5 open"}, found(t, l, "k", true)[:1]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// sealBatch sets a batch's length and checksum to what its bytes are.
func sealBatch(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}
