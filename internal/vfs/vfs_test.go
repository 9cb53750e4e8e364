package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
)

const rw = os.O_RDWR | os.O_CREATE

// each runs a test on every implementation, in a directory that exists.
func each(t *testing.T, f func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { f(t, vfs.OS{}, t.TempDir()) })
	t.Run("faulty", func(t *testing.T) { f(t, vfs.NewFaulty(vfs.OS{}), t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem()
		must(t, m.MkdirAll("/d", 0o755))
		f(t, m, "/d")
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, fsys vfs.FS, name string, flag int) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o644)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFilesKeepWhatIsWritten(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		f := open(t, fsys, name, rw)
		var buffers [][]byte
		var want []byte
		for i := range 3000 { // more than the kernel takes at a time, with empty ones among them
			b := bytes.Repeat([]byte{byte(i)}, i%5)
			buffers, want = append(buffers, b), append(want, b...)
		}
		n, err := f.WritevAt(buffers, 100)
		if n != int64(len(want)) || err != nil {
			t.Fatalf("wrote %d, %v; want %d", n, err, len(want))
		}
		must(t, f.Sync())
		got, err := vfs.ReadFile(fsys, name)
		must(t, err)
		if !bytes.Equal(got, append(make([]byte, 100), want...)) {
			t.Fatal("read other bytes than were written")
		}
		must(t, f.Truncate(50))
		must(t, f.Allocate(0, 200))
		if size, err := f.Size(); size != 200 || err != nil {
			t.Errorf("size is %d, %v; want 200", size, err)
		}
		b := make([]byte, 10)
		if n, err := f.ReadAt(b, 195); n != 5 || err != io.EOF {
			t.Errorf("read over the end: %d, %v; want 5, EOF", n, err)
		}
	})
}

func TestNamesBehaveAsInADirectory(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		sub := filepath.Join(dir, "a", "b")
		must(t, fsys.MkdirAll(sub, 0o755))
		must(t, fsys.MkdirAll(sub, 0o755))
		for _, name := range []string{"z", "x", "y"} {
			must(t, vfs.WriteFile(fsys, filepath.Join(sub, name), []byte(name), 0o644))
		}
		must(t, fsys.Rename(filepath.Join(sub, "x"), filepath.Join(sub, "y")))
		must(t, fsys.SyncDir(sub))
		names, err := fsys.ReadDir(sub)
		must(t, err)
		if d := cmp.Diff([]string{"y", "z"}, names); d != "" {
			t.Error(d)
		}
		if b, err := vfs.ReadFile(fsys, filepath.Join(sub, "y")); string(b) != "x" || err != nil {
			t.Errorf("renamed file holds %q, %v", b, err)
		}
		st, err := fsys.Stat(filepath.Join(sub, "z"))
		if err != nil || st.Size() != 1 || st.IsDir() {
			t.Errorf("stat: %v, %v", st, err)
		}
		must(t, fsys.Remove(filepath.Join(sub, "z")))
		for name, err := range map[string]error{
			"remove": fsys.Remove(filepath.Join(sub, "z")),
			"rename": fsys.Rename(filepath.Join(sub, "z"), filepath.Join(sub, "q")),
			"open":   second(fsys.OpenFile(filepath.Join(sub, "z"), os.O_RDWR, 0)),
			"stat":   second(fsys.Stat(filepath.Join(sub, "z"))),
			"dir":    second(fsys.ReadDir(filepath.Join(dir, "none"))),
			"create": second(fsys.OpenFile(filepath.Join(dir, "none", "f"), rw, 0o644)),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of what is not there: got %v, want ErrNotExist", name, err)
			}
		}
		if _, err := fsys.OpenFile(filepath.Join(sub, "y"), rw|os.O_EXCL, 0o644); !errors.Is(err, fs.ErrExist) {
			t.Errorf("exclusive create of what is there: got %v, want ErrExist", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestLocksNameTheirHolder(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "lock")
		l, err := fsys.Lock(name)
		must(t, err)
		_, err = fsys.Lock(name)
		var locked *vfs.LockedError
		if !errors.As(err, &locked) || !strings.Contains(err.Error(), "process") || !strings.Contains(err.Error(), dir) {
			t.Fatalf("second lock: got %v", err)
		}
		must(t, l.Close())
		l, err = fsys.Lock(name)
		must(t, err)
		must(t, l.Close())
	})
}

func TestFaultsHitTheNthOperation(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	f := open(t, fsys, filepath.Join(t.TempDir(), "seg"), rw)
	fsys.Inject(vfs.Fault{Op: vfs.OpWrite, Name: "seg", Nth: 2, Short: 3})
	fsys.Inject(vfs.Fault{Op: vfs.OpSync, Nth: 2, Keep: true, Err: syscall.ENODEV})
	for i, want := range []error{nil, syscall.EIO, nil} {
		n, err := f.WriteAt([]byte("abcdef"), int64(i*6))
		if !errors.Is(err, want) || want != nil && n != 3 {
			t.Errorf("write %d: %d bytes, %v; want %v", i+1, n, err, want)
		}
	}
	b := make([]byte, 18)
	_, err := f.ReadAt(b, 0)
	must(t, err)
	if want := "abcdefabc\x00\x00\x00abcdef"; string(b) != want {
		t.Errorf("file holds %q, want %q", b, want)
	}
	for i, want := range []error{nil, syscall.ENODEV, syscall.ENODEV} {
		if err := f.Sync(); !errors.Is(err, want) {
			t.Errorf("sync %d: got %v, want %v", i+1, err, want)
		}
	}
	fsys.Heal()
	must(t, f.Sync())
	if n := fsys.Count(vfs.OpSync); n != 4 {
		t.Errorf("counted %d syncs, want 4", n)
	}
}

func TestALimitedDiskFillsUpAndEmpties(t *testing.T) {
	t.Parallel()
	fsys, dir := vfs.NewFaulty(vfs.OS{}), t.TempDir()
	a := open(t, fsys, filepath.Join(dir, "a"), rw)
	must(t, a.Allocate(0, 1000))
	fsys.Limit(500)
	if _, err := a.WriteAt(make([]byte, 1000), 0); err != nil {
		t.Errorf("writing what is allocated: %v", err)
	}
	b := open(t, fsys, filepath.Join(dir, "b"), rw)
	must(t, b.Allocate(0, 400))
	must(t, fsys.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c")))
	if _, err := b.WriteAt(make([]byte, 400), 0); err != nil {
		t.Errorf("writing what is allocated, after a rename: %v", err)
	}
	if err := b.Allocate(400, 101); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	if _, err := a.WriteAt(make([]byte, 101), 1000); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	must(t, fsys.Remove(filepath.Join(dir, "c")))
	must(t, a.Allocate(1000, 500))
}

// What was synced is in every clone; the rest is there or not, sector by sector.
func TestACrashKeepsWhatWasSynced(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("d", 0o755))
	f := open(t, m, "d/f", rw)
	old, fresh := bytes.Repeat([]byte("o"), 4096), bytes.Repeat([]byte("n"), 4096)
	_, err := f.WriteAt(old, 0)
	must(t, err)
	must(t, f.Sync())
	if _, err := m.CrashClone(nil).Stat("d/f"); err == nil {
		t.Error("the name survived without a sync of its directory")
	}
	must(t, m.SyncDir("d"))
	_, err = f.WriteAt(fresh, 0)
	must(t, err)
	must(t, m.Rename("d/f", "d/g"))
	seen := map[string]bool{}
	for seed := range int64(50) {
		c := m.CrashClone(rand.New(rand.NewSource(seed)))
		names, err := c.ReadDir("d")
		must(t, err)
		seen[fmt.Sprint(names)] = true
		for _, name := range names {
			b, err := vfs.ReadFile(c, "d/"+name)
			must(t, err)
			for s := 0; s < len(b); s += 512 {
				if got := string(b[s : s+512]); got != string(old[:512]) && got != string(fresh[:512]) {
					t.Fatal("a sector is neither old nor new")
				}
			}
			seen[string(b)] = true
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d outcomes in 50 crashes", len(seen))
	}
	b, err := vfs.ReadFile(m.CrashClone(nil), "d/f")
	if err != nil || !bytes.Equal(b, old) {
		t.Errorf("with nothing in doubt kept: %d bytes, %v; want the synced ones", len(b), err)
	}
	must(t, f.Sync())
	must(t, m.SyncDir("d"))
	b, err = vfs.ReadFile(m.CrashClone(nil), "d/g")
	if err != nil || !bytes.Equal(b, fresh) {
		t.Errorf("after both syncs: %d bytes, %v; want the new ones", len(b), err)
	}
}

// A file that is replaced holds the old contents or the new ones, whatever fails on the way.
func TestWriteFileIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, fault := range []vfs.Fault{{Op: vfs.OpOpen}, {Op: vfs.OpWrite, Short: 2}, {Op: vfs.OpSync}, {Op: vfs.OpRename}} {
		fsys, name := vfs.NewFaulty(vfs.OS{}), filepath.Join(t.TempDir(), "f")
		must(t, vfs.WriteFile(fsys, name, []byte("old"), 0o644))
		fsys.Inject(fault)
		if err := vfs.WriteFile(fsys, name, []byte("new"), 0o644); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: got %v, want EIO", fault.Op, err)
		}
		if b, err := vfs.ReadFile(fsys, name); string(b) != "old" || err != nil {
			t.Errorf("%s: file holds %q, %v", fault.Op, b, err)
		}
		must(t, vfs.WriteFile(fsys, name, []byte("new"), 0o644))
		if b, err := vfs.ReadFile(fsys, name); string(b) != "new" || err != nil {
			t.Errorf("%s: file holds %q, %v", fault.Op, b, err)
		}
	}
}
