package nginx

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// logger is nginx and what rotates its log, on a disk of memory. Each call of step
// does one thing that a process can be stopped after: it writes a line or half of one,
// renames one file, copies a piece, truncates, packs a piece.
type logger struct {
	rng  *rand.Rand
	disk *memory
	plan []func() // what is left of the rotation under way
	open *node    // what nginx writes to
	half []byte   // the rest of a line of which the first half is written

	copying bool // between the beginning of a copy and the truncation
	lines   []string
	want    map[string]bool // the lines; false: lost by design if it is not read

	// How it rotates.
	copies   int // of ten rotations, how many by copytruncate
	pack     int // the file to be packed at each rotation; 0: none
	keep     int // how many rotated files stay
	meantime int // of ten steps of a copy, before how many nginx writes
}

func newLogger(seed uint64, disk *memory) *logger {
	rng := rand.New(rand.NewPCG(seed, 2))
	l := &logger{
		rng: rng, disk: disk, want: map[string]bool{},
		copies: []int{0, 10, 5}[rng.IntN(3)], pack: []int{0, 0, 1, 2}[rng.IntN(4)], keep: []int{2, 3, 5, 20, 90}[rng.IntN(5)],
		meantime: []int{0, 0, 3}[rng.IntN(3)],
	}
	l.reopen()
	return l
}

func named(n int) string {
	if n == 0 {
		return modelFolder + "/access.log"
	}
	return fmt.Sprintf("%s/access.log.%d", modelFolder, n)
}

// step does the next thing.
func (l *logger) step() {
	switch {
	case len(l.plan) > 0 && l.rng.IntN(3) > 0:
		next := l.plan[0]
		l.plan = l.plan[1:]
		next()
	case l.copying && l.rng.IntN(10) >= l.meantime:
	case len(l.plan) == 0 && l.rng.IntN(12) == 0:
		l.rotate()
	default:
		l.write()
	}
}

// write logs one line, sometimes in two writes.
func (l *logger) write() {
	if l.half != nil {
		l.open.write(l.half)
		l.half = nil
		return
	}
	id := fmt.Sprintf("line-%d", len(l.lines))
	if l.rng.IntN(20) == 0 {
		id += fmt.Sprintf("-%0600d", 0) // so that heads and tails are shorter than files
	}
	l.lines = append(l.lines, id)
	l.want[id] = !l.copying
	at := l.disk.now.UnixMilli()
	line := fmt.Appendf(nil, "%q %d.%03d 200\n", id, at/1000, at%1000)
	if !l.copying && l.rng.IntN(10) == 0 {
		n := 1 + l.rng.IntN(len(line)-1)
		line, l.half = line[:n], line[n:]
	}
	l.open.write(line)
}

func (l *logger) wholeLine() {
	if l.half != nil {
		l.write()
	}
}

func (l *logger) then(steps ...func()) { l.plan = append(l.plan, steps...) }

func (l *logger) rotate() {
	if l.rng.IntN(10) < l.copies {
		l.then(l.shift()...)
		l.copyTruncate()
	} else {
		l.then(l.shift()...)
		l.then(func() { l.disk.rename(named(0), named(1)) }, func() {
			if l.disk.files[named(0)] == nil {
				l.disk.create(named(0))
			}
		}, l.reopen)
	}
	if l.pack > 0 && l.rng.IntN(4) > 0 {
		l.compress(l.pack)
	}
}

// shift makes room for a .1 and removes what is too old.
func (l *logger) shift() (steps []func()) {
	for _, ext := range []string{"", ".gz"} {
		steps = append(steps, func() { l.remove(named(l.keep) + ext) })
	}
	for i := l.keep - 1; i >= 1; i-- {
		for _, ext := range []string{"", ".gz"} {
			if l.disk.files[named(i)+ext] != nil || i == l.pack {
				steps = append(steps, func() { l.disk.rename(named(i)+ext, named(i+1)+ext) })
			}
		}
	}
	return steps
}

// remove deletes a rotated file: what was not read of it by then nobody can have.
func (l *logger) remove(name string) {
	n := l.disk.files[name]
	if n == nil {
		return
	}
	text := n.text
	if isCompressed(name) {
		text = unpack(text)
	}
	for _, line := range bytes.Split(text, []byte("\n")) {
		if id, _, ok := bytes.Cut(bytes.TrimPrefix(line, []byte(`"`)), []byte(`"`)); ok {
			l.want[string(id)] = false
		}
	}
	l.disk.unlink(name)
}

// reopen is what USR1 and a restart do.
func (l *logger) reopen() {
	l.wholeLineIfOpen()
	if l.open != nil {
		l.open.release()
	}
	n := l.disk.files[named(0)]
	if n == nil {
		n = l.disk.create(named(0))
	}
	n.refs++
	l.open = n
}

func (l *logger) wholeLineIfOpen() {
	if l.open != nil {
		l.wholeLine()
	}
}

func (l *logger) copyTruncate() {
	var to *node
	done := 0
	l.then(func() {
		l.wholeLine()
		l.copying = true
		to = l.disk.create(named(1))
	})
	pieces := 1 + l.rng.IntN(3)
	piece := func(last bool) func() {
		return func() {
			text := l.disk.files[named(0)].text
			end := len(text)
			if !last {
				end = done + l.rng.IntN(end-done+1)
			}
			to.write(text[done:end])
			done = end
		}
	}
	for i := range pieces {
		l.then(piece(i == pieces-1))
	}
	l.then(func() {
		l.disk.files[named(0)].truncate()
		l.copying = false
	})
}

func (l *logger) compress(n int) {
	var packed []byte
	var to *node
	var age time.Time
	l.then(func() {
		from := l.disk.files[named(n)]
		if from == nil || from == l.open || l.disk.files[named(n)+".gz"] != nil {
			from = nil
			return
		}
		packed, age = pack(from.text), from.changed
		to = l.disk.create(named(n) + ".gz")
	}, func() {
		if to != nil {
			to.write(packed[:len(packed)/2])
		}
	}, func() {
		if to != nil {
			to.write(packed[len(packed)/2:])
		}
	}, func() {
		if to != nil {
			to.changed = age
			l.disk.unlink(named(n))
		}
	})
}

func pack(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // into memory
	_ = z.Close()
	return b.Bytes()
}

func unpack(packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	_, _ = b.ReadFrom(z)
	return b.Bytes()
}

// finish ends the rotation and the line under way.
func (l *logger) finish() {
	for len(l.plan) > 0 {
		next := l.plan[0]
		l.plan = l.plan[1:]
		next()
	}
	l.wholeLine()
}

// missing returns the lines that should be among these and are not.
func (l *logger) missing(got map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(l.lines), func(id string) bool { return !l.want[id] || got[id] > 0 })
}
