package storage_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The ways to get a journal's bytes from disk to a socket that were compared for docs/decisions/20261130-read-path.md:
// the same pieces, each checked once, in fetches of about 1 MiB, written to a loopback connection whose other end is
// another process. What counts is this process's CPU time.
//
//	go test ./storage -run '^$' -bench ReadMethods -benchtime 2000x
type readMethod struct {
	name string
	open func(b *testing.B, path string) readSource
}

// readSource returns a piece of the file, checked, that stays as it is until the next call of done.
type readSource interface {
	ahead(off, n int64)
	piece(off, n int64) []byte
	done()
}

const (
	methodBlock     = 256 << 10
	ringBytes       = 64 << 20
	methodFileBytes = 256 << 20
)

var readMethods = []readMethod{
	{"pread", func(b *testing.B, path string) readSource { return &preadSource{f: mustOpen(b, path, 0)} }},
	{"mmap", func(b *testing.B, path string) readSource { return newMapSource(b, path) }},
	{"blocks", func(b *testing.B, path string) readSource { return newBlockSource(b, path, 0) }},
	{"direct", func(b *testing.B, path string) readSource { return newBlockSource(b, path, unix.O_DIRECT) }},
}

func mustOpen(b *testing.B, path string, flag int) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|flag, 0)
	must(b, err)
	b.Cleanup(func() { _ = f.Close() })
	return f
}

// preadSource reads each piece into a buffer of the heap, as the journal did until then.
type preadSource struct {
	f    *os.File
	bufs [][]byte
	used int
}

func (s *preadSource) ahead(off, n int64) {
	_ = unix.Fadvise(int(s.f.Fd()), off, n, unix.FADV_WILLNEED)
}
func (s *preadSource) piece(off, n int64) []byte {
	if s.used == len(s.bufs) {
		s.bufs = append(s.bufs, make([]byte, 1<<20))
	}
	buf := s.bufs[s.used][:n]
	s.used++
	_, err := s.f.ReadAt(buf, off)
	if err != nil && err != io.EOF {
		panic(err)
	}
	crc32.Checksum(buf, castagnoli)
	return buf
}
func (s *preadSource) done() { s.used = 0 }

// mapSource gives out parts of a mapping; the kernel reads what is not there.
type mapSource struct {
	f   *os.File
	mem []byte
}

func newMapSource(b *testing.B, path string) *mapSource {
	f := mustOpen(b, path, 0)
	st, err := f.Stat()
	must(b, err)
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	must(b, err)
	b.Cleanup(func() { _ = unix.Munmap(mem) })
	return &mapSource{f: f, mem: mem}
}

func (s *mapSource) ahead(off, n int64) {
	at := off &^ 4095
	_ = unix.Madvise(s.mem[at:min(int64(len(s.mem)), off+n)], unix.MADV_WILLNEED)
}

func (s *mapSource) piece(off, n int64) []byte {
	p := s.mem[off : off+n]
	crc32.Checksum(p, castagnoli)
	return p
}
func (s *mapSource) done() {}

// blockSource keeps whole blocks in memory of its own, as a ring.
type blockSource struct {
	f      *os.File
	direct bool
	mem    []byte
	at     map[int64]int // block to slot
	holds  []int64       // slot to block
	next   int
	size   int64
	out    [][]byte
	wg     sync.WaitGroup
}

func newBlockSource(b *testing.B, path string, flag int) *blockSource {
	f := mustOpen(b, path, flag)
	st, err := f.Stat()
	must(b, err)
	mem, err := unix.Mmap(-1, 0, ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(b, err)
	b.Cleanup(func() { _ = unix.Munmap(mem) })
	clear(mem) // used before, as it is once the journal has run for a while
	s := &blockSource{f: f, direct: flag != 0, mem: mem, at: map[int64]int{}, size: st.Size()}
	s.holds = make([]int64, len(mem)/methodBlock)
	for i := range s.holds {
		s.holds[i] = -1
	}
	return s
}

func (s *blockSource) ahead(off, n int64) {
	if !s.direct {
		_ = unix.Fadvise(int(s.f.Fd()), off, n, unix.FADV_WILLNEED)
		return
	}
	for blk := off / methodBlock; blk*methodBlock < off+n && blk*methodBlock < s.size; blk++ {
		if _, ok := s.at[blk]; !ok {
			slot := s.take(blk)
			s.wg.Go(func() { s.load(blk, slot) })
		}
	}
}

func (s *blockSource) take(blk int64) int {
	slot := s.next
	s.next = (s.next + 1) % len(s.holds)
	delete(s.at, s.holds[slot])
	s.holds[slot], s.at[blk] = blk, slot
	return slot
}

func (s *blockSource) load(blk int64, slot int) {
	buf := s.mem[slot*methodBlock:][:methodBlock]
	n, err := s.f.ReadAt(buf, blk*methodBlock)
	if err != nil && err != io.EOF {
		panic(err)
	}
	crc32.Checksum(buf[:n], castagnoli)
}

func (s *blockSource) block(blk int64) []byte {
	slot, ok := s.at[blk]
	if !ok {
		slot = s.take(blk)
		s.load(blk, slot)
	}
	return s.mem[slot*methodBlock:][:methodBlock]
}

func (s *blockSource) piece(off, n int64) []byte {
	s.wg.Wait()
	s.out = s.out[:0]
	for n > 0 {
		blk := s.block(off / methodBlock)[off%methodBlock:]
		k := min(n, int64(len(blk)))
		if k == n && len(s.out) == 0 {
			return blk[:n]
		}
		s.out = append(s.out, blk[:k])
		off, n = off+k, n-k
	}
	return nil // the pieces are in out
}
func (s *blockSource) done() {}

func usage() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// drain is a connection whose other end is a process that reads and drops everything.
func drain(b *testing.B) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	must(b, err)
	peer, err := l.Accept()
	must(b, err)
	f, err := peer.(*net.TCPConn).File()
	must(b, err)
	must(b, peer.Close())
	cmd := exec.Command("dd", "of=/dev/null", "bs=1M")
	cmd.Stdin = f
	must(b, cmd.Start())
	must(b, f.Close())
	b.Cleanup(func() { _ = c.Close(); _ = cmd.Wait() })
	return c
}

// methodFile is a file in the cache.
func methodFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "segment")
	f, err := os.Create(path)
	must(b, err)
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 7)
	}
	for range methodFileBytes >> 20 {
		_, err := f.Write(chunk)
		must(b, err)
	}
	must(b, f.Sync())
	must(b, f.Close())
	return path
}

func forget(b *testing.B, path string) {
	f, err := os.Open(path)
	must(b, err)
	defer f.Close()
	must(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// BenchmarkReadMethods reads by all methods: "tail" is all partitions of a warm file, as the readers at the tail do;
// "one" a single one of them; both also cold.
func BenchmarkReadMethods(b *testing.B) {
	path := methodFile(b)
	for _, cold := range []bool{false, true} {
		for _, shape := range []struct {
			partitions int
			size       int64
			all        bool
		}{{8, 250 << 10, true}, {200, 2700, true}, {200, 2700, false}} {
			for _, m := range readMethods {
				if m.name == "direct" && !cold || m.name != "pread" && m.name != "mmap" && !shape.all {
					continue // the disk for what is in memory; a whole block for each piece
				}
				name := fmt.Sprintf("cold=%v/partitions=%d/size=%d/all=%v/%s", cold, shape.partitions, shape.size, shape.all, m.name)
				b.Run(name, func(b *testing.B) {
					if cold {
						forget(b, path)
					}
					runMethod(b, m.open(b, path), shape.partitions, shape.size, shape.all)
				})
			}
		}
	}
}

// runMethod serves fetches in rounds: a round is the next MiB of each partition, as the readers come by.
func runMethod(b *testing.B, s readSource, partitions int, size int64, all bool) {
	conn := drain(b)
	var sent, at int64
	perFetch := max(1, int64(1<<20)/size)
	if all {
		perFetch = max(1, perFetch/int64(partitions)) // a fetch holds something of each
	}
	stride := size * int64(partitions)
	before := usage()
	b.ResetTimer()
	for range b.N {
		if at+perFetch*stride > methodFileBytes {
			if at = 0; all {
				break
			}
		}
		if all {
			s.ahead(at, perFetch*stride+4<<20)
		} else {
			for k := range perFetch {
				s.ahead(at+k*stride, size)
			}
		}
		parts := 1
		if all {
			parts = partitions
		}
		var out net.Buffers
		for p := range int64(parts) {
			for k := range perFetch {
				off := at + k*stride + p*size
				if piece := s.piece(off, size); piece != nil {
					out = append(out, piece)
				} else {
					out = append(out, s.(*blockSource).out...)
				}
				sent += size
			}
		}
		_, err := out.WriteTo(conn)
		must(b, err)
		s.done()
		at += perFetch * stride
	}
	b.StopTimer()
	gb := float64(sent) / 1e9
	b.ReportMetric(float64(usage()-before)/1e9/gb, "cpu-s/GB")
	b.ReportMetric(gb*1e9/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(0, "ns/op")
}
