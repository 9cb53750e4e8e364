package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// damaged makes a journal of several segments, closes it, and flips a byte in the middle of its second segment.
func damaged(t *testing.T) (dir string, frames int) {
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for i := range 60 {
		l.put(uint32(i%2), plain(fmt.Sprint("x", i), 2))
	}
	frames = int(l.last())
	must(t, l.Close())
	path := filepath.Join(l.dir, files(t, l.dir, ".seg")[1])
	b, err := os.ReadFile(path)
	must(t, err)
	b[1100] ^= 4
	must(t, os.WriteFile(path, b, 0o644))
	return l.dir, frames
}

func TestVerifyCountsAndNamesDamage(t *testing.T) {
	t.Parallel()
	dir, frames := damaged(t)
	before := inMemory(t, dir)
	r, err := storage.Verify(dir)
	must(t, err)
	if len(r.Problems) != 1 {
		t.Fatalf("got problems %v, want one", r.Problems)
	}
	var d *storage.DamageError
	if !errors.As(r.Problems[0], &d) || d.End <= d.Position || !strings.HasSuffix(d.File, ".seg") || d.Position > d.Position-uint64(d.Offset)+1100 || d.End < d.Position-uint64(d.Offset)+1100 {
		t.Errorf("got %+v, want a range around byte 1100 of the segment", d)
	}
	if r.Frames != frames-1 {
		t.Errorf("counted %d good frames, want all but one of %d", r.Frames, frames)
	}
	for _, name := range files(t, dir, "") {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		want, err := vfs.ReadFile(before, "j/"+name)
		must(t, err)
		if name != "lock" && !bytes.Equal(got, want) {
			t.Errorf("Verify changed %s", name)
		}
	}
}

func TestDumpGoesOnBehindDamage(t *testing.T) {
	t.Parallel()
	dir, frames := damaged(t)
	var out bytes.Buffer
	must(t, storage.Dump(dir, &out))
	lines := strings.Split(out.String(), "\n")
	count := func(prefix string) (n int) {
		for _, l := range lines {
			if strings.HasPrefix(l, prefix) {
				n++
			}
		}
		return n
	}
	if count("frame ") != frames-1 || count("  batch ") != frames-1 || count("damage: ") != 1 || count("segment ") != len(files(t, dir, ".seg")) {
		t.Errorf("got %d frames, %d batches, %d damages in\n%s", count("frame "), count("  batch "), count("damage: "), out.String())
	}
	if want := "index 60 term 1 batches"; !strings.Contains(out.String(), want) {
		t.Errorf("the last frame, %q, is missing", want)
	}
}

func TestVerifyAndDumpNeedTheJournalToThemselves(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	var locked *vfs.LockedError
	if _, err := storage.Verify(l.dir); !errors.As(err, &locked) {
		t.Errorf("Verify: got %v, want a LockedError", err)
	}
	if err := storage.Dump(l.dir, &bytes.Buffer{}); !errors.As(err, &locked) {
		t.Errorf("Dump: got %v, want a LockedError", err)
	}
	if _, err := storage.Verify(filepath.Join(l.dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of nothing: got %v, want ErrNotExist", err)
	}
}

// A start that takes the indexes does not read the data; the damage is met by the read, which serves what lies before
// it and names the range.
func TestDamageIsReportedWhereItIsRead(t *testing.T) {
	t.Parallel()
	dir, _ := damaged(t)
	l := openLog(t, dir, storage.Options{SegmentBytes: 4 << 10})
	var failures int
	for p := range uint32(2) {
		_, end := l.Bounds(p)
		if end != 60 {
			t.Fatalf("partition %d ends at %d, want 60", p, end)
		}
		for offset := range end {
			c, err := l.Read(p, offset, 1, -1)
			var d *storage.DamageError
			switch {
			case errors.As(err, &d):
				failures++
			case err != nil:
				t.Fatal(err)
			default:
				if got := offsets(c.Pieces[0])[0]; got != offset/2*2 {
					t.Fatalf("offset %d: got batch %d", offset, got)
				}
			}
		}
	}
	if failures != 2 { // the two offsets of the damaged batch
		t.Errorf("%d offsets could not be read, want 2", failures)
	}
}

// What is damaged is there: whoever asks for it learns of the damage, in whatever way, and never that it does not exist.
func TestDamageIsNotAbsence(t *testing.T) {
	t.Parallel()
	dir, _ := damaged(t)
	r, err := storage.Verify(dir)
	must(t, err)
	var d *storage.DamageError
	if len(r.Problems) != 1 || !errors.As(r.Problems[0], &d) {
		t.Fatalf("got problems %v, want one damage", r.Problems)
	}
	l := openLog(t, dir, storage.Options{SegmentBytes: 4 << 10})
	absent := 0
	for i := uint64(1); i <= l.last(); i++ {
		if _, err := l.Frame(i); err != nil && isDamage(err) {
			absent++
		} else if err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if absent != 1 {
		t.Errorf("%d entries are damaged, want one", absent)
	}
	for p := range uint32(2) { // all records have the time 1000, so looking for a later one needs no batch, for that one the first
		if f, ok, err := l.OffsetForTime(p, 1000); err != nil || !ok || f.Offset != 0 {
			t.Errorf("partition %d: time 1000 is at %+v, %v, %v", p, f, ok, err)
		}
	}
	c := openCommands(t, 200)
	must(t, c.Close())
	path := filepath.Join(c.dir, files(t, c.dir, ".seg")[1])
	b, err := os.ReadFile(path)
	must(t, err)
	b[500] ^= 4
	must(t, os.WriteFile(path, b, 0o644))
	c = openLog(t, c.dir, c.opts)
	absent = 0
	for i := uint64(1); i <= 200; i++ {
		if err := c.GetLog(i, new(raft.Log)); err != nil && isDamage(err) {
			absent++
		} else if err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if absent != 1 {
		t.Errorf("%d commands are damaged, want one", absent)
	}
}

// A time that only damaged bytes could answer is damage, not another record's and not none.
func TestATimeIsNeverAnsweredFromDamage(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 4 << 10})
	for i := range 60 {
		l.put(0, batch(batchSpec{times: []int64{int64(10 * i), int64(10*i + 5)}}))
	}
	must(t, l.Close())
	name := files(t, l.dir, ".seg")[1]
	ends := frameEnds(t, filepath.Join(l.dir, name))
	fsys := inMemory(t, l.dir)
	o := l.opts
	o.FS = fsys
	for at := range ends[2] { // of three frames every byte
		must(t, flip(fsys, "j/"+name, uint64(8*at+at%8)))
		l, err := tryOpen(t, "j", o)
		must(t, err) // from its index
		lost := 0
		for i := range int64(120) {
			f, ok, err := l.OffsetForTime(0, 5*i)
			switch {
			case isDamage(err):
				lost++
			case err != nil || !ok || f.Offset != i:
				t.Fatalf("byte %d changed: time %d is at %+v, %v, %v; want offset %d", at, 5*i, f, ok, err, i)
			}
		}
		if lost > 0 && lost < 2 {
			t.Errorf("byte %d changed: %d times lie in the damaged batch, want 2 at least", at, lost)
		}
		must(t, l.Close())
		must(t, flip(fsys, "j/"+name, uint64(8*at+at%8)))
	}
}

// read returns the offsets of partition 0 from an offset on, and what is told of gaps before which offset.
func read(t *testing.T, dir string, partition uint32, from int64, stop bool) (offsets []int64, gaps []storage.GapError, err error) {
	t.Helper()
	p, err := storage.OpenPeek(vfs.OS{}, dir)
	must(t, err)
	err = p.Records(partition, from, func(r storage.Record) error {
		offsets = append(offsets, r.Offset)
		return nil
	}, func(g *storage.GapError) error {
		gaps = append(gaps, *g)
		if stop {
			return g
		}
		return nil
	})
	return offsets, gaps, err
}

func TestAReaderStopsWhereRecordsAreMissing(t *testing.T) {
	t.Parallel()
	dir, _ := damaged(t)
	var lost int64
	for partition := range uint32(2) {
		all, gaps, err := read(t, dir, partition, 0, false)
		must(t, err)
		if len(gaps) != 1 || gaps[0].To < 0 || int64(len(all))+gaps[0].To-gaps[0].From != 60 {
			t.Fatalf("partition %d: %d records of 60, gaps %+v", partition, len(all), gaps)
		}
		g := gaps[0]
		lost += g.To - g.From
		some, _, err := read(t, dir, partition, 0, true)
		var gap *storage.GapError
		var damage *storage.DamageError
		if !errors.As(err, &gap) || !errors.As(err, &damage) || damage.Offset == 0 || int64(len(some)) != g.From {
			t.Errorf("partition %d: reading ends with %d records and %v; want %d, and where the damage is", partition, len(some), err, g.From)
		}
		if behind, _, err := read(t, dir, partition, g.To, true); err != nil || int64(len(behind)) != 60-g.To {
			t.Errorf("partition %d: behind the damage are %d records, %v; want %d", partition, len(behind), err, 60-g.To)
		}
	}
	if lost != 2 {
		t.Errorf("a frame of 2 records is damaged, and %d are told of", lost)
	}
}

func TestAReaderTellsOfMissingSegmentsAndOfDamageAtTheEnd(t *testing.T) {
	t.Parallel()
	dir, _ := damaged(t)
	segments := files(t, dir, ".seg")
	must(t, os.Remove(filepath.Join(dir, segments[1])))
	all, gaps, err := read(t, dir, 0, 0, false)
	if err != nil || len(gaps) != 1 || len(all) == 0 || int64(len(all))+gaps[0].To-gaps[0].From != 60 {
		t.Errorf("without a segment: %d records, gaps %v, %v", len(all), gaps, err)
	}
	for _, s := range segments[2:] {
		must(t, os.Remove(filepath.Join(dir, s)))
	}
	path := filepath.Join(dir, segments[0])
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)-200] ^= 4
	b[1100] ^= 4
	must(t, os.WriteFile(path, b, 0o644))
	all, gaps, err = read(t, dir, 1, 0, true)
	if err == nil || len(gaps) != 1 || int64(len(all)) != gaps[0].From {
		t.Errorf("%d records, gaps %v, %v", len(all), gaps, err)
	}
}
