package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/file"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// dying is a file system whose process dies at the n-th change: that one and all later ones are not done.
type dying struct {
	vfs.FS
	mu    sync.Mutex
	left  int // changes still to be done; negative: no end
	log   []string
	files int // open now
	most  int
}

var errDead = errors.New("the process is dead")

func (d *dying) change(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return errDead
	}
	d.left--
	d.log = append(d.log, fmt.Sprintf(format, args...))
	return nil
}

func (d *dying) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := d.change("open %s", name); err != nil {
		return nil, err
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files++
	d.most = max(d.most, d.files)
	return &dyingFile{File: f, fs: d}, nil
}

func (d *dying) Rename(a, b string) error {
	if err := d.change("rename %s", b); err != nil {
		return err
	}
	return d.FS.Rename(a, b)
}

func (d *dying) Remove(name string) error {
	if err := d.change("remove %s", name); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d *dying) MkdirAll(name string, perm fs.FileMode) error {
	if err := d.change("mkdir %s", name); err != nil {
		return err
	}
	return d.FS.MkdirAll(name, perm)
}

func (d *dying) SyncDir(name string) error {
	if err := d.change("syncdir %s", name); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}

func (d *dying) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

type dyingFile struct {
	vfs.File
	fs *dying
}

func (f *dyingFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.change("write %s", f.Name()); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off) // torn
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *dyingFile) Sync() error {
	if err := f.fs.change("sync %s", f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *dyingFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.files--
	return f.File.Close()
}

const crashTemplate = "/data/out/{kind}/{mm}.ndjson.zst"

// input is what the sink gets: records of two kinds, with output boundaries after every seventh.
func input(n int64) pipeline.Delivery {
	return event(n, fmt.Sprintf(`{"kind":"%c","n":%d,"pad":%q}`, 'a'+n%2, n, strings.Repeat("x", int(n*37%400))))
}

const crashRecords = 150

// life runs the sink on fsys from where it stands to the end of the input, or until it dies.
func life(t *testing.T, fsys vfs.FS) error {
	t.Helper()
	c := config(fsys, crashTemplate)
	c.Roll = file.RollConfig{Size: 1500, Time: 20 * time.Second}
	s, err := c.OpenSink(sinktest.NewEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sink := s.(*file.Sink)
	cp, _, err := sink.Resume(t.Context())
	if err != nil {
		return err
	}
	for n := cp.Offsets[pipeline.Partition{Stream: sinktest.Stream}]; n < crashRecords; n++ {
		if err := s.Write(t.Context(), []pipeline.Delivery{input(n)}); err != nil {
			return err
		}
		if n%7 == 6 && sink.Due(sinktest.Stamp+n*1_000_000) || n == crashRecords-1 {
			if err := s.Flush(t.Context(), sinktest.UpTo(n+1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// uncrashed returns what a run without a fault leaves, and its changes of the disk.
func uncrashed(t *testing.T) (map[string][]byte, []string) {
	t.Helper()
	d := &dying{FS: vfs.NewMem(), left: -1}
	if err := life(t, d); err != nil {
		t.Fatal(err)
	}
	want := rawTree(t, d.FS, "/data/out")
	if len(want) < 6 {
		t.Fatalf("only %d files", len(want))
	}
	return want, d.log
}

// TestACrashAnywhereLeavesTheSameFiles dies at every change of the disk, in three ways, and starts again.
func TestACrashAnywhereLeavesTheSameFiles(t *testing.T) {
	t.Parallel()
	want, log := uncrashed(t)
	t.Logf("%d changes of the disk, %d files", len(log), len(want))
	neither := 0
	for n := range log {
		for _, how := range []string{"killed", "power cut", "power cut, some survived"} {
			mem := vfs.NewMem()
			err := life(t, &dying{FS: mem, left: n})
			if !errors.Is(err, errDead) {
				t.Fatalf("at %s: %v", log[n], err)
			}
			switch how {
			case "power cut":
				mem = mem.CrashClone(nil)
			case "power cut, some survived":
				mem = mem.CrashClone(rand.New(rand.NewSource(int64(n))))
				if lostInRename(t, mem) {
					neither++
					continue
				}
			}
			onlyWhole(t, want, rawTree(t, mem, "/data/out"), log[n], how)
			if err := life(t, mem); err != nil {
				t.Fatalf("%s at %s: starting again: %v", how, log[n], err)
			}
			if diff := cmp.Diff(want, rawTree(t, mem, "/data/out")); diff != "" {
				t.Fatalf("%s at change %d (%s): the files differ (-want +got):\n%s", how, n, log[n], diff)
			}
			if names, err := mem.ReadDir("/data/out/.daybook-shop-sink/parts"); err != nil || len(names) > 0 {
				t.Fatalf("%s at %s: left behind %v, %v", how, log[n], names, err)
			}
		}
	}
	if neither > len(log)/4 {
		t.Errorf("%d of %d cuts were not tried", neither, len(log))
	}
}

// onlyWhole holds that a reader at any moment finds only files of the final tree, complete.
func onlyWhole(t *testing.T, want, got map[string][]byte, at, how string) {
	t.Helper()
	for name, data := range got {
		if !bytes.Equal(want[name], data) {
			t.Fatalf("%s at %s: a reader finds %s with %d bytes, the final one has %d", how, at, name, len(data), len(want[name]))
		}
	}
}

// lostInRename finds what the simulated disk does and no real one may: a rename that left the file under neither name.
func lostInRename(t *testing.T, mem *vfs.Mem) bool {
	t.Helper()
	text, err := vfs.ReadFile(mem, "/data/out/.daybook-shop-sink/manifest")
	if err != nil {
		return false
	}
	files := file.ManifestFiles(t, text)
	for _, part := range slices.Sorted(maps.Keys(files)) {
		_, errPart := mem.Stat("/data/out/.daybook-shop-sink/parts/" + part)
		_, errFinal := mem.Stat("/data/out/" + files[part])
		if errPart != nil && errFinal != nil {
			return true
		}
	}
	return false
}

// TestFaultsThatPassLoseNothing lets each operation fail once; the sink goes on by itself. Files may then end elsewhere,
// but hold the same lines.
func TestFaultsThatPassLoseNothing(t *testing.T) {
	t.Parallel()
	var want []string
	for n := range int64(crashRecords) {
		want = append(want, string(input(n).Value))
	}
	slices.Sort(want)
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir, vfs.OpRead} {
		for nth := 1; ; nth++ {
			mem := vfs.NewMem()
			f := vfs.NewFaulty(mem)
			f.Inject(vfs.Fault{Op: op, Nth: nth, Short: 7})
			again := patient(t, f)
			got := lines(t, mem, "/data/out")
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s %d failed once: lines differ (-want +got):\n%s", op, nth, diff)
			}
			if f.Count(op) < nth {
				break // there are no more
			}
			if again == 0 && op != vfs.OpRead {
				t.Fatalf("%s %d failed, and nothing was tried again", op, nth)
			}
		}
	}
}

// patient is what the deliver loop does: it tries again what failed for now.
func patient(t *testing.T, fsys vfs.FS) (again int) {
	t.Helper()
	c := config(fsys, crashTemplate)
	c.Roll = file.RollConfig{Size: 1500, Time: 20 * time.Second}
	s := sinktest.Open(t, c, sinktest.NewEnv(t)).(*file.Sink)
	retry := func(f func() error) {
		for err := f(); err != nil; err = f() {
			if errors.As(err, new(*pipeline.StopError)) {
				t.Fatal(err)
			}
			if again++; again > 10 {
				t.Fatalf("still failing: %v", err)
			}
		}
	}
	retry(func() error { _, _, err := s.Resume(t.Context()); return err })
	for n := range int64(crashRecords) {
		sinktest.Write(t, s, input(n))
		if n%7 == 6 && s.Due(sinktest.Stamp+n*1_000_000) || n == crashRecords-1 {
			retry(func() error { return s.Flush(t.Context(), sinktest.UpTo(n+1)) })
		}
	}
	return again
}
