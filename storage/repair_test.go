package storage_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// repair plans and applies what repairs a journal.
func repair(t *testing.T, dir string, keep storage.Keep) *storage.Repair {
	t.Helper()
	r, err := storage.PlanRepair(vfs.OS{}, dir, keep)
	must(t, err)
	if r == nil {
		t.Fatal("nothing to repair was found")
	}
	must(t, r.Apply())
	must(t, r.Close())
	return r
}

func TestWhatIsWholeNeedsNoRepair(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for i := range 60 {
		l.put(uint32(i%2), plain(fmt.Sprint("x", i), 2))
	}
	dir := l.crash() // with a torn tail, perhaps
	for _, d := range []string{dir, t.TempDir()} {
		r, err := storage.PlanRepair(vfs.OS{}, d, "")
		if must(t, err); r != nil {
			t.Errorf("a repair of %s wants to give up positions %d to %d", d, r.From, r.To)
		}
	}
}

func TestRepairedJournalsOpenAndGoOn(t *testing.T) {
	t.Parallel()
	for _, keep := range []storage.Keep{storage.KeepNewer, storage.KeepOlder} {
		t.Run(string(keep), func(t *testing.T) {
			t.Parallel()
			dir, _ := damaged(t)
			before := hashes(t, dir)
			plan := repair(t, dir, keep)
			if plan.Keep != keep || plan.From >= plan.To || len(plan.Lost) != 2 {
				t.Errorf("the plan is %+v", plan)
			}
			nothingDeleted(t, before, dir, plan)
			report, err := storage.Verify(dir)
			if must(t, err); len(report.Problems) > 0 {
				t.Fatalf("after the repair: %v", report.Problems)
			}
			l := openLog(t, dir, storage.Options{SegmentBytes: 4 << 10})
			want := int64(60) // two records a batch, sixty batches in two partitions
			if keep == storage.KeepOlder {
				want = plan.Lost[0].First
			}
			if got := l.put(0, plain("y", 1))[0]; got != want {
				t.Errorf("the next offset is %d, want %d", got, want)
			}
			first, _ := l.Bounds(0)
			if keep == storage.KeepNewer && first != plan.Lost[0].Next {
				t.Errorf("the first offset is %d, lost were those up to %d", first, plan.Lost[0].Next)
			}
			must(t, l.Close())
			if again, err := storage.PlanRepair(vfs.OS{}, dir, ""); err != nil || again != nil {
				t.Errorf("there is still something to repair: %+v, %v", again, err)
			}
		})
	}
}

func TestRepairOfALossBelowTheDurablePoint(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	for i := range 20 {
		l.put(0, plain(fmt.Sprint("x", i), 1))
	}
	must(t, l.Close())
	path := filepath.Join(l.dir, files(t, l.dir, ".seg")[0])
	b, err := os.ReadFile(path)
	must(t, err)
	b[1500] ^= 1
	must(t, os.WriteFile(path, b, 0o644))
	if _, err := tryOpen(t, l.dir, storage.Options{}); !isDamage(err) {
		t.Fatalf("the start says %v, want damage", err)
	}
	before := hashes(t, l.dir)
	plan := repair(t, l.dir, "")
	if plan.Keep != storage.KeepOlder || plan.Lost[0].Next != 20 || plan.Lost[0].First == 0 {
		t.Errorf("the plan is %+v", plan)
	}
	nothingDeleted(t, before, l.dir, plan)
	again := openLog(t, l.dir, storage.Options{})
	if _, end := again.Bounds(0); end > plan.Lost[0].First {
		t.Errorf("the partition ends at %d, lost were those from %d", end, plan.Lost[0].First)
	}
}

func TestRepairOfMissingSegments(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		dir, _ := damaged(t)
		segs := files(t, dir, ".seg")
		must(t, os.Remove(filepath.Join(dir, segs[i])))
		repair(t, dir, "")
		openLog(t, dir, storage.Options{SegmentBytes: 4 << 10})
	}
}

// Whatever fails on the way, the journal can be repaired again, and nothing is gone.
func TestARepairThatIsCutOffCanBeRepeated(t *testing.T) {
	t.Parallel()
	original, _ := damaged(t)
	before := hashes(t, original)
	for _, keep := range []storage.Keep{storage.KeepNewer, storage.KeepOlder} {
		for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpRename} {
			for n := 1; ; n++ {
				dir := t.TempDir()
				copyDir(t, original, dir)
				fsys := vfs.NewFaulty(vfs.OS{})
				fsys.Inject(vfs.Fault{Op: op, Nth: n, Err: os.ErrInvalid})
				r, err := storage.PlanRepair(fsys, dir, keep)
				must(t, err)
				failed := r.Apply()
				must(t, r.Close())
				if failed == nil {
					if n == 1 && op != vfs.OpSync {
						t.Errorf("%s: a repair without a %v", keep, op)
					}
					break
				}
				second, err := storage.PlanRepair(vfs.OS{}, dir, keep)
				must(t, err)
				if second != nil {
					must(t, second.Apply())
					must(t, second.Close())
				}
				nothingDeleted(t, before, dir, r)
				must(t, openLog(t, dir, storage.Options{SegmentBytes: 4 << 10}).Close())
			}
		}
	}
}

// hashes are the contents of a journal's segments.
func hashes(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range files(t, dir, ".seg") {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		all[name] = b
	}
	return all
}

// nothingDeleted checks that every byte of every segment is in the journal or in a quarantine.
func nothingDeleted(t *testing.T, before map[string][]byte, dir string, plan *storage.Repair) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "quarantine-*"))
	must(t, err)
	for name, want := range before {
		found := false
		for _, d := range append(folders, dir) {
			got, err := os.ReadFile(filepath.Join(d, name))
			if err != nil {
				continue
			}
			if cut := name == plan.CutFile && int64(len(got)) == plan.CutAt; cut {
				for _, q := range folders {
					rest, _ := os.ReadFile(filepath.Join(q, fmt.Sprintf("%s.from-%d", name, plan.CutAt)))
					found = found || bytes.Equal(append(bytes.Clone(got), rest...), want)
				}
			}
			found = found || bytes.Equal(got, want)
		}
		if !found {
			t.Errorf("%s is not what it was, and not in %s", name, strings.Join(folders, ", "))
		}
	}
}
