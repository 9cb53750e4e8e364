package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// flips turns bits of disks that a power cut left, and says which promise is broken then.
type flips struct {
	l       *life
	rng     *rand.Rand
	told    int // starts that stopped at damage above the mark because frames behind it bear witness
	refused int // starts that stopped at other damage
	lost    int // starts that took damage for a torn tail, where nothing tells it from one
	served  int // starts that served all but what is damaged
}

// lies is where a frame lies.
type lies struct {
	file     string
	base     uint64
	from, to uint64 // journal positions
}

// survives turns a few bits, one after the other.
func (f *flips) survives(disk *vfs.Mem, p promises) error {
	if p.Reset {
		return nil
	}
	mark := markOf(disk)
	healthy := disk.Crash(nil)
	want, _, err := f.open(healthy)
	if err != nil {
		return err
	}
	frames, err := framesOn(healthy)
	if err != nil || len(frames) == 0 {
		return err
	}
	end := frames[len(frames)-1].to
	var proven uint64 // whatever is below was synced before something that is there was written
	for _, s := range f.l.synced {
		if s < end && !p.Cutting {
			proven = s
		}
	}
	last := frames[len(frames)-1].base
	for range 4 {
		at := frames[f.rng.Intn(len(frames))]
		if f.rng.Intn(3) > 0 { // mostly one of the last frames
			at = frames[len(frames)-1-f.rng.Intn(min(5, len(frames)))]
		}
		bit := (at.from-at.base)*8 + uint64(f.rng.Int63n(int64(at.to-at.from)*8))
		bad := disk.Crash(nil)
		if err := flip(bad, at.file, bit); err != nil {
			return err
		}
		what := fmt.Sprintf("bit %d of %s is flipped, in the frame from %d to %d; the log is proven to %d and ends at %d, the mark is at %d",
			bit, at.file, at.from, at.to, proven, end, mark)
		if err := f.judge(bad, want, at, max(mark, proven), at.base == last && at.from >= mark); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// judge opens a disk on which a frame is damaged.
func (f *flips) judge(bad *vfs.Mem, want [lifeParts][]byte, at lies, proven uint64, aboveMark bool) error {
	got, whole, err := f.open(bad)
	var damage *storage.DamageError
	switch {
	case err != nil && !errors.As(err, &damage):
		return err
	case damage != nil && aboveMark && at.to <= proven:
		f.told++
		if damage.Position != at.from || damage.End != at.to {
			return fmt.Errorf("the range told is %d to %d: %w", damage.Position, damage.End, err)
		}
		return nil
	case err != nil:
		f.refused++
		return nil
	}
	lost := false
	for id := range lifeParts {
		short := whole[id] && len(got[id]) < len(want[id])
		lost = lost || short
		switch {
		case !bytes.HasPrefix(want[id], got[id]):
			return fmt.Errorf("partition %d holds %v, should hold %v", id, offsets(got[id]), offsets(want[id]))
		case short && at.to <= proven:
			return fmt.Errorf("partition %d ends at batch %v without a word, should end at %v", id, offsets(got[id]), offsets(want[id]))
		}
	}
	if lost {
		f.lost++
	} else {
		f.served++
	}
	return nil
}

// open opens a disk and reads all of it. whole says which partitions could be read to their ends.
func (f *flips) open(disk *vfs.Mem) (contents [lifeParts][]byte, whole [lifeParts]bool, err error) {
	o := f.l.opts
	o.FS = disk
	j, err := storage.Open("j", o)
	if err != nil {
		return contents, whole, err
	}
	l := &log{t: f.l.t, opts: o, Journal: j, term: 1}
	defer j.Close()
	l.Commit(l.last())
	for id := range lifeParts {
		contents[id], err = l.tryContents(uint32(id))
		if whole[id] = err == nil; err != nil && !isDamage(err) {
			return contents, whole, err
		}
	}
	return contents, whole, nil
}

func markOf(disk *vfs.Mem) uint64 {
	b, err := vfs.ReadFile(disk, "j/mark")
	if err != nil || len(b) < 32 {
		return 0
	}
	return binary.LittleEndian.Uint64(b[8:])
}

func flip(disk *vfs.Mem, file string, bit uint64) error {
	f, err := disk.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], int64(bit/8)); err != nil {
		return err
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := f.WriteAt(b[:], int64(bit/8)); err != nil {
		return err
	}
	return f.Sync()
}

// framesOn lists the frames of the journal on a disk, which was opened and closed.
func framesOn(disk *vfs.Mem) (all []lies, err error) {
	names, err := disk.ReadDir("j")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".seg") {
			continue
		}
		var base uint64
		if _, err := fmt.Sscanf(name, "%d.seg", &base); err != nil {
			return nil, err
		}
		b, err := vfs.ReadFile(disk, "j/"+name)
		if err != nil {
			return nil, err
		}
		le := binary.LittleEndian
		for at := 0; at+64 <= len(b) && le.Uint32(b[at:]) == 0x314a4244 && le.Uint64(b[at+32:]) == base+uint64(at); {
			from := base + uint64(at)
			at += int(le.Uint32(b[at+4:]))
			all = append(all, lies{"j/" + name, base, from, base + uint64(at)})
		}
	}
	return all, nil
}

// A power cut and a bit that flips: what was on stable storage before something that is still there was written is never
// taken for a torn tail, however old the mark is. Only of what was written last nobody can tell.
func TestPowerCutsHideNoDamage(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]int64{"durable": 0, "replicated": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := flips{}
			for n := range seeds(t, 3) {
				rng := rand.New(rand.NewSource(first + 2*n))
				e := newEnumeration(rng)
				e.nested = 0
				all.rng = rng
				e.check = func(disk *vfs.Mem, p promises) error {
					all.l = e.life
					return all.survives(disk, p)
				}
				e.run(t, first+2*n, steps(60))
				if e.found != nil {
					t.Fatalf("seed %d: %s", first+2*n, shorten(e.found))
				}
			}
			t.Logf("told %d, refused %d, lost %d, served %d", all.told, all.refused, all.lost, all.served)
			if !raced && min(all.told, all.refused, all.lost, all.served) < 50 {
				t.Error("the test has gone blind")
			}
		})
	}
}
