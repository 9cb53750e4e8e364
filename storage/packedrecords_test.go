package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/daybook-data/daybook/storage"
)

// repacked is a plain batch whose records are what packed makes of them.
func repacked(b []byte, codec storage.Compression, packed func(plain []byte) []byte) []byte {
	b = append(bytes.Clone(b[:61]), packed(b[61:])...)
	b[22] = b[22]&^7 | byte(codec)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	return recrc(b)
}

// lz4With packs as clients do that set these options.
func lz4With(options ...lz4.Option) func([]byte) []byte {
	return func(plain []byte) []byte {
		var b bytes.Buffer
		w := lz4.NewWriter(&b)
		if err := w.Apply(options...); err != nil {
			panic(err)
		}
		_, _ = w.Write(plain)
		_ = w.Close()
		return b.Bytes()
	}
}

// bothParts is a frame of two linked blocks, as lz4's own library writes them by default: the first stored, the
// second a repetition of its last 8 bytes, then the 5 literals that end a block.
func bothParts(plain []byte) []byte {
	n := len(plain) - 13
	frame := []byte{4, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0}
	frame = binary.LittleEndian.AppendUint32(frame, uint32(n)|1<<31)
	frame = append(frame, plain[:n]...)
	second := append([]byte{4, 8, 0, 0x50}, plain[len(plain)-5:]...)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(second)))
	return append(append(frame, second...), 0, 0, 0, 0)
}

// Values are longer than what is unpacked at a time, shorter, and so random that they are stored as they are.
func TestPackedRecordsAreReadAcrossTheBoundsOfBlocks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	values := []string{"", strings.Repeat("x", 5<<20), string(noise)}
	times := []int64{5000, 9000, 1000}
	for range 3000 {
		at := random.IntN(len(noise) / 2)
		values, times = append(values, string(noise[at:at+random.IntN(400)])), append(times, 1000+random.Int64N(8000))
	}
	plain := batch(batchSpec{times: times, values: values, key: "some key", tag: "some tag"})
	for name, b := range map[string][]byte{
		"gzip":                   repacked(plain, storage.Gzip, func(p []byte) []byte { return pack(storage.Gzip, p) }),
		"snappy of Java":         repacked(plain, storage.Snappy, func(p []byte) []byte { return pack(storage.Snappy, p) }),
		"snappy":                 repacked(plain, storage.Snappy, func(p []byte) []byte { return s2.EncodeSnappy(nil, p) }),
		"zstd":                   repacked(plain, storage.Zstd, func(p []byte) []byte { return pack(storage.Zstd, p) }),
		"lz4":                    repacked(plain, storage.LZ4, lz4With()),
		"lz4 of Java":            repacked(plain, storage.LZ4, lz4With(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false))),
		"lz4 with block sums":    repacked(plain, storage.LZ4, lz4With(lz4.BlockSizeOption(lz4.Block256Kb), lz4.BlockChecksumOption(true))),
		"lz4 that says its size": repacked(plain, storage.LZ4, lz4With(lz4.SizeOption(uint64(len(plain)-61)))),
	} {
		earliest, latest, err := storage.NewRecordReader().Times(b)
		if err != nil || earliest != 1000 || latest != 9000 {
			t.Errorf("%s: times %d to %d, %v; want 1000 to 9000", name, earliest, latest, err)
		}
	}
	value := "0123456789" + "abcdefgh" + "abcdefgh" + "12345" // and what follows it in the batch: no headers
	linked := repacked(batch(batchSpec{values: []string{value}}), storage.LZ4, func(p []byte) []byte {
		p = bytes.Clone(p)
		copy(p[len(p)-13:], p[len(p)-21:len(p)-13]) // what the second block will unpack to
		frame := bothParts(p)
		back, err := io.ReadAll(lz4.NewReader(bytes.NewReader(frame)))
		if err != nil || !bytes.Equal(back, p) {
			t.Fatalf("the frame of the test unpacks to %q, %v", back, err)
		}
		return frame
	})
	if _, _, err := storage.NewRecordReader().Times(linked); err != nil {
		t.Errorf("linked blocks: %v", err)
	}
}

func TestWhatDoesNotUnpackToItsRecordsIsInvalid(t *testing.T) {
	t.Parallel()
	reader := storage.NewRecordReader()
	good := batch(batchSpec{values: []string{"aa", strings.Repeat("b", 100<<10)}, key: "k", tag: "t"})
	for _, codec := range codecs[1:] {
		whole := func(p []byte) []byte { return pack(codec, p) }
		for name, b := range map[string][]byte{
			"garbage":              repacked(good, codec, func([]byte) []byte { return []byte("no such thing as this") }),
			"nothing":              repacked(good, codec, func([]byte) []byte { return nil }),
			"cut short":            repacked(good, codec, func(p []byte) []byte { b := whole(p); return b[:len(b)*2/3] }),
			"bytes behind it":      repacked(good, codec, func(p []byte) []byte { return append(whole(p), "\x00more"...) }),
			"packed garbage":       repacked(good, codec, func([]byte) []byte { return whole(bytes.Repeat([]byte{0xff}, 1000)) }),
			"a record too many":    repacked(good, codec, func(p []byte) []byte { return whole(append(p, p...)) }),
			"fewer records":        repacked(good, codec, func(p []byte) []byte { return whole(p[:1+p[0]/2]) }),
			"a key beyond its end": repacked(good, codec, func(p []byte) []byte { p = bytes.Clone(p); p[4] = 0x7e; return whole(p) }),
			"a value beyond it":    repacked(good, codec, func(p []byte) []byte { p = bytes.Clone(p); p[6] = 0x7e; return whole(p) }),
			"an offset twice": repacked(good, codec, func(p []byte) []byte {
				p = bytes.Clone(p)
				p[1+int(p[0])/2+3+2] = 0 // behind the second's length, attributes and time
				return whole(p)
			}),
		} {
			if _, _, err := reader.Times(b); !errors.Is(err, storage.ErrInvalidBatch) {
				t.Errorf("codec %d, %s: got %v, want %v", codec, name, err, storage.ErrInvalidBatch)
			}
		}
		if _, _, err := reader.Times(repacked(good, codec, whole)); err != nil {
			t.Errorf("codec %d: the good batch after them: %v", codec, err)
		}
	}
}

// A batch of a megabyte that unpacks to gigabytes is refused in bounded memory.
func TestABombIsRefusedInBoundedMemory(t *testing.T) {
	r := storage.NewRecordReader()
	zeroes := make([]byte, 4<<20)
	huge := binary.AppendVarint(nil, 3<<30) // the length of a record of zeroes
	bomb := func(w io.WriteCloser, b *bytes.Buffer) func([]byte) []byte {
		return func([]byte) []byte {
			_, _ = w.Write(append(huge, 0, 0, 0, 1))
			_, _ = w.Write(binary.AppendVarint(nil, 3<<30-20))
			for range 300 {
				_, _ = w.Write(zeroes)
			}
			_ = w.Close()
			return b.Bytes()
		}
	}
	one := batch(batchSpec{values: []string{"a"}})
	var inLZ4, inZstd, inGzip bytes.Buffer
	z, err := zstd.NewWriter(&inZstd)
	must(t, err)
	for name, b := range map[string][]byte{
		"lz4":    repacked(one, storage.LZ4, bomb(lz4.NewWriter(&inLZ4), &inLZ4)),
		"zstd":   repacked(one, storage.Zstd, bomb(z, &inZstd)),
		"gzip":   repacked(one, storage.Gzip, bomb(gzip.NewWriter(&inGzip), &inGzip)),
		"snappy": repacked(one, storage.Snappy, func([]byte) []byte { return s2.EncodeSnappy(nil, make([]byte, 100<<20)) }),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := r.Times(b)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, storage.ErrInvalidBatch) {
			t.Errorf("%s: %d bytes that unpack to 1.2 GB: got %v, want %v", name, len(b), err, storage.ErrInvalidBatch)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 80<<20 {
			t.Errorf("%s: took %d MB for %d bytes", name, taken>>20, len(b))
		}
	}
}

// FuzzPackedRecords gives any bytes as the packed records of a batch: they are refused, or every reader reads them.
func FuzzPackedRecords(f *testing.F) {
	for _, c := range codecs {
		b := batch(batchSpec{times: []int64{1, 5, 3}, values: []string{"a", "b", strings.Repeat("c", 1000)}, codec: c})
		f.Add(byte(c), byte(2), b[61:])
	}
	f.Add(byte(storage.LZ4), byte(1), bothParts(bytes.Repeat([]byte("abcdefgh"), 5)))
	reader := storage.NewRecordReader()
	f.Fuzz(func(t *testing.T, codec, records byte, packed []byte) {
		b := make([]byte, 61, 61+len(packed))
		b = append(b, packed...)
		b[16], b[22], b[26], b[60] = 2, codec%5, records%16, records%16+1
		binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
		for i := 43; i < 57; i++ {
			b[i] = 0xff
		}
		b = recrc(b)
		if _, err := storage.CheckBatch(b); err != nil {
			return
		}
		if _, _, err := reader.Times(b); err != nil {
			return
		}
		if n, err := storage.CountRecords(b); err != nil || n != int(records%16)+1 {
			t.Fatalf("accepted as %d records, but they are read as %d, %v", records%16+1, n, err)
		}
	})
}

func BenchmarkTimesOfPackedRecords(b *testing.B) {
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf(`{"id":%d,"customer":"c%d","state":"paid","note":%q}`, i, i*7919, strings.Repeat("lorem ipsum ", 70))
	}
	r := storage.NewRecordReader()
	for _, codec := range codecs[1:] {
		data := batch(batchSpec{values: values, codec: codec})
		b.Run(fmt.Sprint(codec), func(b *testing.B) {
			b.SetBytes(int64(len(values) * 900))
			for b.Loop() {
				if _, _, err := r.Times(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
