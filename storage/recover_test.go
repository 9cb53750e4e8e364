package storage_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// forgetDurable removes the mark, as if the power had gone before it reached the disk: nothing of the last segment is
// then known to be durable.
func forgetDurable(t testing.TB, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "mark")); err != nil {
		t.Fatal(err)
	}
}

func lastSegment(t testing.TB, dir string) string {
	t.Helper()
	segs := files(t, dir, ".seg")
	return filepath.Join(dir, segs[len(segs)-1])
}

// lastFrame returns the offset and length of the last frame in a segment file.
func lastFrame(t testing.TB, path string) (off, length int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+64 <= len(b) && binary.LittleEndian.Uint32(b[at:]) == 0x314a4244; {
		off, length = at, int(binary.LittleEndian.Uint32(b[at+4:]))
		at += length
	}
	return off, length
}

// The last segment is cut at every byte of its last frame. Exactly the whole frames before it are there; appending
// goes on; two more starts find everything.
func TestTornTailIsCutAtEveryByte(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 64 << 10}
	l := openLog(t, t.TempDir(), o)
	var before []byte
	for i := range 5 {
		data := plain(fmt.Sprint("keep", i), 2)
		l.put(0, data)
		before = append(before, data...)
	}
	l.put(0, plain("torn", 1))
	dir := l.crash()
	off, length := lastFrame(t, lastSegment(t, dir))
	const frameAlign = 16
	// What the disk has of the cut frame is followed by nothing, by zeroes, or by what the file held before.
	for _, rest := range []string{"end", "zeroes", "garbage"} {
		for cut := range length {
			if cut >= length-frameAlign && rest == "zeroes" {
				continue // of the padding zeroes change nothing
			}
			fsys := inMemory(t, dir)
			must(t, fsys.Remove("j/mark")) // the power went before it reached the disk
			path := "j/" + filepath.Base(lastSegment(t, dir))
			data, err := vfs.ReadFile(fsys, path)
			must(t, err)
			must(t, vfs.WriteFile(fsys, path, torn(data, off+cut, rest), 0o644))
			o.FS = fsys
			checkTorn(t, "j", o, before, fmt.Sprintf("%s after byte %d", rest, cut))
		}
	}
}

// inMemory copies a journal's files into a directory j in memory.
func inMemory(t testing.TB, dir string) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	must(t, fsys.MkdirAll("j", 0o755))
	for _, name := range files(t, dir, "") {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, vfs.WriteFile(fsys, "j/"+name, b, 0o644))
	}
	return fsys
}

func torn(b []byte, at int, rest string) []byte {
	tail := b[at:]
	switch rest {
	case "end":
		return b[:at]
	case "zeroes":
		clear(tail)
	case "garbage":
		for i := range tail {
			tail[i] = byte(0xa5 ^ i)
		}
	}
	return b
}

func tear(t testing.TB, path string, at int, rest string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, torn(b, at, rest), 0o644))
}

func checkTorn(t *testing.T, dir string, o storage.Options, before []byte, what string) {
	t.Helper()
	l, err := tryOpen(t, dir, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := l.contents(0); !bytes.Equal(got, before) {
		t.Fatalf("%s: got batches %v, want those before the torn frame %v", what, offsets(got), offsets(before))
	}
	more := plain("more", 1)
	if got := l.put(0, more)[0]; got != 10 {
		t.Fatalf("%s: the next batch got offset %d, want 10", what, got)
	}
	want := append(bytes.Clone(before), more...)
	for start := range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = tryOpen(t, dir, o); err != nil {
			t.Fatalf("%s: start %d: %v", what, start+2, err)
		}
		if got := l.contents(0); !bytes.Equal(got, want) {
			t.Fatalf("%s: start %d: got %v, want %v", what, start+2, offsets(got), offsets(want))
		}
	}
	_ = l.Close()
}

// The same cut below the point that was on stable storage is no torn tail: frames that were acknowledged are gone.
func TestLossBelowTheDurablePointStopsTheStart(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for range 3 {
		l.put(0, plain("x", 2))
	}
	dir := l.crash()
	off, length := lastFrame(t, lastSegment(t, dir))
	for _, cut := range []int{0, 1, 63, 64, 100, length - 1} {
		for _, rest := range []string{"end", "zeroes", "garbage"} {
			torn := t.TempDir()
			copyDir(t, dir, torn)
			tear(t, lastSegment(t, torn), off+cut, rest)
			_, err := tryOpen(t, torn, l.opts)
			if cut == length-1 && rest == "zeroes" && err == nil {
				continue // the byte was zero before
			}
			if !isDamage(err) {
				t.Fatalf("cut %d, %s: got %v, want a DamageError", cut, rest, err)
			}
			for _, want := range []string{".seg", "position", "journal verify"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("message %q does not say %q", err, want)
				}
			}
		}
	}
}

// Every byte of a journal that is flipped is noticed: by the start, by Verify, or by the read that would have served it.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(t, t.TempDir(), o)
	for i := range 14 {
		l.put(uint32(i%2), plain(fmt.Sprint("x", i), 3), plain(fmt.Sprint("y", i), 1))
	}
	l.noop()
	dir := l.crash()
	want := [][]byte{l.contents(0), l.contents(1)}
	segs := files(t, dir, ".seg")
	if len(segs) < 2 {
		t.Fatalf("got %d segments, the test wants several", len(segs))
	}
	fsys := inMemory(t, dir)
	for _, name := range segs {
		f, err := fsys.OpenFile("j/"+name, os.O_RDWR, 0)
		must(t, err)
		off, length := lastFrame(t, filepath.Join(dir, name))
		var b [1]byte
		flip := func(at int64) {
			_, err := f.ReadAt(b[:], at)
			must(t, err)
			b[0] ^= 0x40
			_, err = f.WriteAt(b[:], at)
			must(t, err)
		}
		for at := range int64(off + length) {
			flip(at)
			r, err := storage.VerifyFS(fsys, "j")
			must(t, err)
			if len(r.Problems) == 0 {
				t.Fatalf("%s: flipped byte %d is not noticed by Verify", name, at)
			}
			if at%5 == 0 {
				must(t, f.Sync())
				o.FS = fsys.CrashClone(nil)
				checkFlipped(t, o, want, fmt.Sprintf("%s byte %d", name, at))
			}
			flip(at)
		}
	}
}

// checkFlipped opens the damaged journal and makes sure that nothing wrong is served.
func checkFlipped(t *testing.T, o storage.Options, want [][]byte, what string) {
	t.Helper()
	l, err := tryOpen(t, "j", o)
	if isDamage(err) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for p, w := range want {
		got, err := l.tryContents(uint32(p))
		if err != nil && !isDamage(err) {
			t.Fatalf("%s: %v", what, err)
		}
		if err == nil && !bytes.Equal(got, w) || !bytes.HasPrefix(w, got) {
			t.Fatalf("%s: partition %d: other bytes are served than were written", what, p)
		}
	}
	_ = l.Close()
}

// A whole frame at the start of a segment that does not link to the one before is never the end of the log.
func TestAFrameThatDoesNotLinkStopsTheStart(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(t, t.TempDir(), o)
	for i := range 30 {
		l.put(0, plain(fmt.Sprint("x", i), 3))
	}
	dir := l.crash()
	forgetDurable(t, dir)
	segs := files(t, dir, ".seg")
	path := filepath.Join(dir, segs[len(segs)-1])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[48:], 12345) // the checksum of the frame before
	count := binary.LittleEndian.Uint32(b[40:])
	reseal(b, 64+int(count)*32)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(t, dir, o); !isDamage(err) || !strings.Contains(err.Error(), "link") {
		t.Fatalf("got %v, want a DamageError about the link", err)
	}
}

// After the end was cut and rewritten with a lower term, the frames that were cut never come back (stale frames keep
// their own position, so position and checksum alone would take them).
func TestStaleFramesBehindACutDoNotComeBack(t *testing.T) {
	t.Parallel()
	for _, o := range []storage.Options{{}, {SegmentBytes: 4 << 10}} {
		l := openLog(t, t.TempDir(), o)
		l.put(0, plain("a", 2))
		keep := l.contents(0)
		l.term = 9
		committed := l.last()
		for i := range 40 {
			if err := l.store(&storage.Batch{Partition: 0, Data: plain(fmt.Sprint("stale", i), 2)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.DeleteRange(committed+1, l.last()); err != nil {
			t.Fatal(err)
		}
		if got := l.last(); got != committed {
			t.Fatalf("last index is %d after the cut, want %d", got, committed)
		}
		l.term = 5
		want := keep
		for i := range 7 { // frames of the same size, so that they end where stale ones began
			data := plain(fmt.Sprint("fresh", i), 2)
			if got := l.put(0, data)[0]; got != int64(2+2*i) {
				t.Fatalf("got offset %d, want %d", got, 2+2*i)
			}
			want = append(want, data...)
			dir := l.crash()
			forgetDurable(t, dir)
			again := openLog(t, dir, o)
			if got := again.contents(0); !bytes.Equal(got, want) {
				t.Fatalf("after %d fresh batches: got %v, want %v", i+1, offsets(got), offsets(want))
			}
			_ = again.Close()
			verifyClean(t, dir)
		}
	}
}

// Whole frames behind the end of the log, as a torn write of several frames leaves them, are gone for good once the
// log was cut before them.
func TestLeftoversOfATornWriteAreCut(t *testing.T) {
	t.Parallel()
	o := storage.Options{}
	l := openLog(t, t.TempDir(), o)
	l.put(0, plain("a", 1))
	firstEnd, _ := func() (int, int) { o, n := lastFrame(t, lastSegment(t, l.dir)); return o + n, n }()
	var torn [][]byte
	for i := range 5 {
		torn = append(torn, plain(fmt.Sprint(i), 1))
	}
	l.putMany(0, torn...)
	dir := l.crash()
	forgetDurable(t, dir)
	path := lastSegment(t, dir)
	b, _ := os.ReadFile(path)
	clear(b[firstEnd : firstEnd+64]) // the header of the second frame did not reach the disk, the frames behind it did
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, dir, o)
	again.put(0, plain("0", 1)) // exactly as long as the frame that was lost
	dir = again.crash()
	forgetDurable(t, dir)
	third := openLog(t, dir, o)
	if got := offsets(third.contents(0)); len(got) != 2 {
		t.Fatalf("got batches at %v, want 2", got)
	}
}

// Index files are caches. Deleted, truncated, garbled or swapped, the answers are the same.
func TestIndexFilesAreCaches(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10, IndexCache: 1}
	l := openLog(t, t.TempDir(), o)
	for i := range 120 {
		l.put(uint32(i%3), batch(batchSpec{values: []string{"v", "w"}, times: []int64{int64(i * 10), int64(i*10 + 5)}, producer: 7, sequence: int32(i / 3 * 2)}))
	}
	type answers struct {
		data [][]byte
		at   []storage.Found
		dup  int64
	}
	ask := func(l *log) (a answers) {
		for p := range uint32(3) {
			a.data = append(a.data, l.contents(p))
			for ms := int64(0); ms < 1300; ms += 35 {
				f, _, err := l.OffsetForTime(p, ms)
				if err != nil {
					t.Fatal(err)
				}
				a.at = append(a.at, f)
			}
		}
		again := &storage.Batch{Partition: 2, Data: batch(batchSpec{values: []string{"v", "w"}, times: []int64{1, 2}, producer: 7, sequence: 78})}
		if err := l.store(again); err != nil || again.Err != nil {
			t.Fatal(err, again.Err)
		}
		a.dup = again.Offset
		return a
	}
	want := fmt.Sprint(ask(l))
	crashed := l.crash()
	idx := files(t, crashed, ".idx")
	if len(idx) < 3 {
		t.Fatalf("got %d index files, the test wants several", len(idx))
	}
	edits := map[string]func(path string, b []byte){
		"deleted":   func(path string, _ []byte) { must(t, os.Remove(path)) },
		"emptied":   func(path string, _ []byte) { must(t, os.WriteFile(path, nil, 0o644)) },
		"truncated": func(path string, b []byte) { must(t, os.WriteFile(path, b[:len(b)/2], 0o644)) },
		"cut short": func(path string, b []byte) { must(t, os.WriteFile(path, b[:len(b)-1], 0o644)) },
		"garbled head": func(path string, b []byte) {
			b[100] ^= 1
			must(t, os.WriteFile(path, b, 0o644))
		},
		"garbled batch index": func(path string, b []byte) {
			b[len(b)-20] ^= 1
			must(t, os.WriteFile(path, b, 0o644))
		},
		"of another segment": func(path string, _ []byte) {
			b, err := os.ReadFile(filepath.Join(crashed, idx[len(idx)/2]))
			must(t, err)
			if filepath.Base(path) != idx[len(idx)/2] {
				must(t, os.WriteFile(path, b, 0o644))
			}
		},
	}
	for name, edit := range edits {
		for _, which := range [][]string{idx[:1], idx[len(idx)-1:], idx} {
			dir := t.TempDir()
			copyDir(t, crashed, dir)
			for _, f := range which {
				path := filepath.Join(dir, f)
				b, err := os.ReadFile(path)
				must(t, err)
				edit(path, b)
			}
			again := openLog(t, dir, o)
			if got := fmt.Sprint(ask(again)); got != want {
				t.Errorf("%s (%d of %d files): other answers", name, len(which), len(idx))
			}
			_ = again.Close()
		}
	}
}

// So is the mark, as long as it claims nothing: without it, or with any part of it, the start finds everything.
func TestAMarkThatIsLostStopsNoStart(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for i := range 60 {
		l.put(0, plain(fmt.Sprint(i), 3))
	}
	want := l.contents(0)
	crashed := l.crash()
	good, err := os.ReadFile(filepath.Join(crashed, "mark"))
	must(t, err)
	marks := map[string][]byte{"lost": nil, "empty": {}, "zeroes": make([]byte, len(good)), "garbage": bytes.Repeat([]byte{0xa5}, 100)}
	for n := range good {
		marks[fmt.Sprint("cut after ", n)] = good[:n]
		flipped := bytes.Clone(good)
		flipped[n] ^= 4
		marks[fmt.Sprint("byte ", n, " changed")] = flipped
	}
	for name, mark := range marks {
		dir := t.TempDir()
		copyDir(t, crashed, dir)
		forgetDurable(t, dir)
		if mark != nil {
			must(t, os.WriteFile(filepath.Join(dir, "mark"), mark, 0o644))
		}
		again, err := tryOpen(t, dir, l.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(again.contents(0), want) {
			t.Errorf("%s: other contents", name)
		}
		must(t, again.Close())
	}
}

// P9: what is kept twice survives the loss of one copy; without both the start stops.
func TestStartFileSurvivesTheLossOfACopy(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	must(t, l.SetUint64([]byte("CurrentTerm"), 41))
	must(t, l.SetUint64([]byte("CurrentTerm"), 42))
	must(t, l.Set([]byte("LastVoteCand"), []byte("me")))
	l.put(0, plain("a", 1))
	must(t, l.Close())
	flip := func(dir, name string) {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		must(t, err)
		b[40] ^= 1
		must(t, os.WriteFile(path, b, 0o644))
	}
	for _, name := range []string{"start.0", "start.1"} {
		dir := l.crash()
		flip(dir, name)
		for range 2 {
			again := openLog(t, dir, l.opts)
			if got, err := again.GetUint64([]byte("CurrentTerm")); got != 42 || err != nil {
				t.Errorf("with %s damaged: term is %d, %v; want 42", name, got, err)
			}
			must(t, again.Close())
		}
		verifyClean(t, dir) // the start repaired it
	}
	// While the lost copy is made good again, the power may go: the good one is not touched before.
	for _, name := range []string{"start.0", "start.1"} {
		dir := l.crash()
		flip(dir, name)
		for _, nth := range []int{1, 2} {
			fsys := vfs.NewFaulty(vfs.OS{})
			fsys.Inject(vfs.Fault{Op: vfs.OpWrite, Name: "start.", Nth: nth, Short: 18})
			if _, err := tryOpen(t, dir, storage.Options{FS: fsys}); err == nil {
				t.Fatalf("with %s damaged: write %d never came", name, nth)
			}
			again := openLog(t, dir, l.opts)
			if got, err := again.GetUint64([]byte("CurrentTerm")); got != 42 || err != nil {
				t.Errorf("with %s damaged and write %d torn: term is %d, %v; want 42", name, nth, got, err)
			}
			must(t, again.Close())
			flip(dir, name)
		}
	}
	dir := l.crash()
	flip(dir, "start.0")
	flip(dir, "start.1")
	if _, err := tryOpen(t, dir, l.opts); !isDamage(err) {
		t.Errorf("with both copies damaged: got %v, want a DamageError", err)
	}
	must(t, os.Remove(filepath.Join(dir, "start.0")))
	must(t, os.Remove(filepath.Join(dir, "start.1")))
	if _, err := tryOpen(t, dir, l.opts); !isDamage(err) {
		t.Errorf("without both copies: got %v, want a DamageError", err)
	}
}

func TestMissingSegmentsStopTheStart(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(t, t.TempDir(), o)
	for i := range 60 {
		l.put(0, plain(fmt.Sprint(i), 3))
	}
	segs := files(t, l.dir, ".seg")
	for _, lost := range [][]string{segs[:1], segs[1:2], segs[len(segs)-1:], segs} {
		dir := l.crash()
		for _, name := range lost {
			must(t, os.Remove(filepath.Join(dir, name)))
		}
		if _, err := tryOpen(t, dir, o); !isDamage(err) {
			t.Errorf("without %v of %d: got %v, want a DamageError", lost, len(segs), err)
		}
	}
}

// A file that somebody has cut short is damage at once, also where the index beside it knows what it held and the last
// frame's header is there still.
func TestASegmentThatIsCutShortStopsTheStart(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(t, t.TempDir(), o)
	for i := range 14 {
		l.put(0, plain(fmt.Sprint("x", i, strings.Repeat("v", 500)), 3))
	}
	dir := l.crash()
	fsys := inMemory(t, dir)
	for _, name := range files(t, dir, ".seg") {
		off, length := lastFrame(t, filepath.Join(dir, name))
		for size := int64(off + length - 1); size >= 0; size -= 37 {
			cut := fsys.CrashClone(nil)
			f, err := cut.OpenFile("j/"+name, os.O_RDWR, 0)
			must(t, err)
			must(t, f.Truncate(size))
			o.FS = cut
			if _, err := tryOpen(t, "j", o); !isDamage(err) {
				t.Fatalf("%s cut to %d of %d bytes: got %v, want a DamageError", name, size, off+length, err)
			}
		}
	}
}

// A file that is cut short while the journal is open is damage to who reads it.
func TestASegmentThatIsCutShortServesNobody(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	l := openLog(t, "j", storage.Options{FS: mem, SegmentBytes: 4 << 10})
	for i := range 14 {
		l.put(0, plain(fmt.Sprint("x", i, strings.Repeat("v", 500)), 3))
	}
	names, err := mem.ReadDir("j")
	must(t, err)
	i := slices.IndexFunc(names, func(n string) bool { return filepath.Ext(n) == ".seg" })
	f, err := mem.OpenFile("j/"+names[i], os.O_RDWR, 0)
	must(t, err)
	must(t, f.Truncate(2000))
	if _, err := l.tryContents(0); !isDamage(err) {
		t.Errorf("a reader gets %v, want a DamageError", err)
	}
	damaged := 0
	for i := uint64(1); i <= l.last(); i++ {
		switch _, err := l.Frame(i); {
		case isDamage(err):
			damaged++
		case err != nil:
			t.Errorf("a follower that asks for entry %d gets %v, want a DamageError", i, err)
		}
	}
	if damaged == 0 || damaged > 7 {
		t.Errorf("%d entries are damaged, want those of one file", damaged)
	}
	must(t, l.Err())
}

// A group restarted after kill -9 knows its votes, its last entry and its configuration.
func TestRaftFindsItsLogAgain(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{Commands: true, SegmentBytes: 4 << 10})
	conf := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "b"}}})
	logs := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: conf}, {Index: 2, Term: 2, Type: raft.LogNoop}, {Index: 3, Term: 2, Type: raft.LogBarrier}}
	for i := range uint64(300) {
		logs = append(logs, &raft.Log{Index: 4 + i, Term: 3, Type: raft.LogCommand, Data: fmt.Appendf(nil, "command %d", i)})
	}
	must(t, l.StoreLogs(logs))
	again := openLog(t, l.crash(), l.opts)
	for _, want := range logs {
		var got raft.Log
		must(t, again.GetLog(want.Index, &got))
		if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("entry %d: got %+v, want %+v", want.Index, got, want)
		}
	}
	var none raft.Log
	if err := again.GetLog(304, &none); err != raft.ErrLogNotFound {
		t.Errorf("entry behind the end: got %v, want ErrLogNotFound unwrapped", err)
	}
}

// A restart reads the last segment and of all others no more than the header of the last frame, however much is kept.
func TestARestartReadsOnlyTheLastSegment(t *testing.T) {
	t.Parallel()
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(t, t.TempDir(), o)
	for i := range 300 {
		l.put(uint32(i%3), plain(fmt.Sprint(i), 3))
	}
	dir := l.crash()
	segs := files(t, dir, ".seg")
	disk := vfs.NewFaulty(vfs.OS{})
	reads := map[string]int{}
	disk.Before = func(op vfs.Op, name string) {
		if op == vfs.OpRead && strings.HasSuffix(name, ".seg") {
			reads[filepath.Base(name)]++
		}
	}
	o.FS = disk
	must(t, openLog(t, dir, o).Close())
	for _, name := range segs[:len(segs)-1] {
		if reads[name] > 1 {
			t.Errorf("segment %s was read %d times", name, reads[name])
		}
	}
	if reads[segs[len(segs)-1]] == 0 || len(segs) < 10 {
		t.Errorf("%d segments, the last one read %d times", len(segs), reads[segs[len(segs)-1]])
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
