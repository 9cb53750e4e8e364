package storage_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"

	"github.com/daybook-data/daybook/storage"
)

func TestTimesOfRecordsAreReadFromTheRecords(t *testing.T) {
	t.Parallel()
	for _, codec := range []storage.Compression{storage.None, storage.Gzip, storage.Snappy, storage.LZ4, storage.Zstd} {
		b := batch(batchSpec{times: []int64{5000, 9000, 1000, 8000}, codec: codec, key: "k", tag: "t"})
		binary.BigEndian.PutUint64(b[35:], math.MaxUint64) // the header's latest time is not set: -1
		earliest, latest, err := storage.NewRecordReader().Times(b)
		if err != nil || earliest != 1000 || latest != 9000 {
			t.Errorf("codec %d: times %d to %d, %v; want 1000 to 9000", codec, earliest, latest, err)
		}
	}
}

func TestCreateTimeIsFoundByWhateverTheProducerSaid(t *testing.T) {
	t.Parallel()
	b := batch(batchSpec{times: []int64{5000, 9000, 1000}, appendAt: 77})
	storage.SetCreateTime(b, 9000)
	h, err := storage.CheckBatch(b)
	if err != nil || h.LogAppendTime() || h.MaxTimestamp != 9000 {
		t.Fatalf("header %+v, %v; want the producer's times up to 9000", h, err)
	}
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(0, b)
	for ms, want := range map[int64]int64{0: 0, 5000: 0, 5001: 1, 9000: 1, 9001: -1} {
		if got := l.at(ms); got != want {
			t.Errorf("time %d is at offset %d, want %d", ms, got, want)
		}
	}
}

func TestRecordsThatAreNotWhatTheHeaderSaysAreInvalid(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(b []byte) []byte{
		"fewer records":        func(b []byte) []byte { b[26], b[60] = 2, 3; return b },
		"more records":         func(b []byte) []byte { b[26], b[60] = 0, 1; return b },
		"an offset twice":      func(b []byte) []byte { b[64+int(b[61])/2+1] = 0; return b },
		"a key beyond its end": func(b []byte) []byte { b[65] = 0x7e; return b },
		"a record of nothing":  func(b []byte) []byte { b[61] = 0; return b },
		"headers beyond it":    func(b []byte) []byte { b[len(b)-1] = 8; return b },
	} {
		b := damage(batch(batchSpec{values: []string{"aa", "bb"}}))
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
		if _, _, err := storage.NewRecordReader().Times(b); !errors.Is(err, storage.ErrInvalidBatch) {
			t.Errorf("%s: got %v, want %v", name, err, storage.ErrInvalidBatch)
		}
	}
	cut := batch(batchSpec{times: []int64{1, 2, 3}, codec: storage.LZ4})
	if _, _, err := storage.NewRecordReader().Times(cut[:len(cut)-9]); !errors.Is(err, storage.ErrInvalidBatch) {
		t.Errorf("cut short: got %v, want %v", err, storage.ErrInvalidBatch)
	}
}

func BenchmarkTimesOfRecords(b *testing.B) {
	values := make([]string, 5000)
	for i := range values {
		values[i] = string(make([]byte, 200))
	}
	data := batch(batchSpec{values: values, key: "some key"})
	b.SetBytes(int64(len(data)))
	r := storage.NewRecordReader()
	for b.Loop() {
		if _, _, err := r.Times(data); err != nil {
			b.Fatal(err)
		}
	}
}
