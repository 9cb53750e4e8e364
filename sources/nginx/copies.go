package nginx

import (
	"bytes"
	"time"
)

// verdict says what a file is that nobody has seen before.
type verdict int

const (
	isNew   verdict = iota // to be read
	isCopy                 // of what was read, or will be, and perhaps of more
	isPart                 // of what was read
	notSure                // to be looked at again
)

// copyTime is how long a copy may take between two writes.
const copyTime = 5 * time.Second

// suspect is a file that may be a copy.
type suspect struct {
	*file
	status status
	length int64  // -1 where only the end tells
	start  []byte // its first bytes
	young  bool   // it was written lately: it may still be written
	waits  bool   // so it is looked at again later; with Once there is no later
}

// has reports whether there is more in x than up to the offset.
func (x suspect) has(offset int64) bool {
	if x.length < 0 {
		return !unpacks(x.content, offset)
	}
	return x.length > offset
}

// judge says of an unsure file whether it is a copy of another of its log, as
// copytruncate and gzip make them, or was that log itself. This is done when there is
// something to emit of it and not before: a copy may be found at any moment of its
// making, also by a run that has begun just then. It reports whether the file is
// settled: made sure, or taken out of the series, or without a byte that can be judged.
func (w *follower) judge(s *series, f *file) (settled bool, err error) {
	x, readable, err := w.suspect(f)
	if err != nil || !readable || len(x.start) == 0 {
		return readable, err
	}
	var better *file // of which x has more than was read
	part, sure := false, true
	for _, g := range s.files {
		if g == f || g.unsure {
			continue
		}
		if !x.canCopy(g, s.base) {
			sure = sure && g.intact()
			continue
		}
		switch v, err := w.compare(s, g, x); {
		case err != nil:
			return false, err
		case v == notSure:
			sure = false
		case v == isPart:
			part = true
		case v == isCopy && x.has(g.offset):
			better = g
		case v == isCopy: // the very same
			return w.place(s, g, x), nil
		}
	}
	switch {
	case !sure:
		return false, nil
	case better != nil:
		return w.place(s, better, x), nil
	case part:
		w.drop(s, x)
		return true, nil
	}
	f.unsure = false
	return true, nil
}

// suspect looks at the file, if it can be read.
func (w *follower) suspect(f *file) (x suspect, readable bool, err error) {
	st, err := f.content.stat()
	if err != nil {
		return suspect{}, false, err
	}
	age := w.now().Sub(st.changed)
	x = suspect{file: f, status: st, length: f.content.length(st), young: age < copyTime && age > -copyTime}
	x.waits = x.young && !w.once
	x.start, err = readFull(f.content, 0, headLength)
	if x.length < 0 && err != nil { // damaged, or gzip is writing it
		if len(x.start) == 0 {
			w.notReadable(f, st.changed, err)
		}
		return x, len(x.start) > 0 && !x.waits, nil
	}
	return x, err == nil, err
}

// canCopy reports whether x can be a copy of g; its contents then tell. Where lines
// have no time, or the same, files may begin alike by chance, so it is not asked of
// any two. A copy is of a log that was there before the copy, or was truncated since,
// or will be soon; a log that was renamed was not truncated, and only gzip makes
// something of it, which then is there in its place.
func (x suspect) canCopy(g *file, base string) bool {
	renamed := g.key != fileKey{} && g.gone.IsZero() && g.path != base
	if x.length < 0 {
		return !renamed
	}
	return x.late || !renamed && (x.young || g.truncated)
}

// compare says whether x is a copy of g.
func (w *follower) compare(s *series, g *file, x suspect) (verdict, error) {
	if g.frozen != nil {
		return compareFrozen(g, x, s.base)
	}
	head := g.head
	if len(head) == 0 && g.content != nil {
		var err error
		if head, err = readFull(g.content, 0, headLength); err != nil {
			return notSure, nil // its own step says so
		}
	}
	n := min(len(head), len(x.start))
	switch {
	case n == 0 || !bytes.Equal(head[:n], x.start[:n]):
		return isNew, nil
	case !g.done:
		return w.compareOpen(s, g, x)
	case unpacks(x.content, g.offset):
		return isCopy, nil
	}
	v, err := x.holds(g.state())
	if v == isNew && err == nil && x.endsBefore(g.offset) {
		return x.shorter(), nil
	}
	return v, err
}

// holds says whether x has what was read of a file, or more.
func (x suspect) holds(g fileState) (verdict, error) {
	same, err := g.holds(x.content)
	switch {
	case err != nil && x.length >= 0:
		return notSure, err
	case err != nil:
		return x.shorter(), nil // damaged, and before the place that was reached
	case same:
		return isCopy, nil
	}
	return isNew, nil
}

// endsBefore reports whether x has less than up to the offset.
func (x suspect) endsBefore(offset int64) bool {
	if x.length >= 0 {
		return x.length < offset
	}
	last, _ := readFull(x.content, offset-1, 1) // a damaged one ends, too
	return len(last) == 0
}

// shorter judges a file that begins like another and ends before the place that was
// reached there: a copy to which the logger's last lines did not come before it was
// truncated, or that was given up.
func (x suspect) shorter() verdict {
	if x.waits {
		return notSure // it is still being copied
	}
	return isPart
}

// compareFrozen is compare for a file of which only fingerprints are left.
func compareFrozen(g *file, x suspect, base string) (verdict, error) {
	if v, err := x.holds(*g.frozen); v != isNew || err != nil || !x.endsBefore(g.offset) {
		return v, err
	}
	if n := g.frozen.Head.Length; n <= len(x.start) {
		if fingerprintOf(x.start[:n]) != g.frozen.Head {
			return isNew, nil
		}
		return x.shorter(), nil
	}
	if first, _, _ := bytes.Cut(x.start, []byte("\n")); idOf(base, first) != g.id {
		return isNew, nil
	}
	return x.shorter(), nil
}

// compareOpen is compare for a file that is being read. It says isCopy only of what
// will never be needed because g was read beyond it, and of a copy that is better than
// the one that g is read from.
func (w *follower) compareOpen(s *series, g *file, x suspect) (verdict, error) {
	if !g.intact() {
		return notSure, nil // its next step will say so
	}
	st, err := g.content.stat()
	if err != nil {
		return notSure, err
	}
	length := g.content.length(st)
	switch {
	case x.waits:
		return notSure, nil
	case x.length < 0 || length < 0:
		if !w.once {
			return notSure, nil // until g is finished
		}
		return x.holds(g.state())
	}
	same, err := alikeAt(g.content, x.content, min(length, x.length))
	switch {
	case err != nil:
		return notSure, err
	case !same || x.length > length && g.path == s.base:
		return isNew, nil
	case x.length > length || g.offset >= x.length || w.once:
		return isCopy, nil
	}
	return notSure, nil
}

// intact reports whether what was read last still stands in an open file.
func (g *file) intact() bool {
	if g.content == nil {
		return true
	}
	tail, err := readFull(g.content, g.offset-int64(len(g.tail)), len(g.tail))
	return err == nil && bytes.Equal(tail, g.tail)
}

// alikeAt reports whether both contents have the same bytes before the offset.
func alikeAt(a, b content, end int64) (bool, error) {
	n := min(end, tailLength)
	inA, err := readFull(a, end-n, int(n))
	if err != nil {
		return false, err
	}
	inB, err := readFull(b, end-n, int(n))
	return bytes.Equal(inA, inB), err
}

// place takes x, a copy of g, out of the series. A finished g lies where its copy lies
// from now on, and goes on in it where the copy has more; one that is read does so only
// where it has no better content. False if x is another file by now.
func (w *follower) place(s *series, g *file, x suspect) bool {
	more := x.has(g.offset)
	if !g.done && (x.length < 0 || !more || g.path == s.base) {
		w.drop(s, x)
		return true
	}
	if !g.moveTo(x, more) {
		return false
	}
	if more {
		g.done, g.ended, g.limit, g.looked = false, false, x.limit, -1
		g.rotatedAt, g.grownAt = w.now(), w.now()
	}
	s.remove(x.file)
	w.dirty = true
	return true
}

// moveTo makes g the file that x was.
func (g *file) moveTo(x suspect, reading bool) bool {
	former := g.content
	g.content = x.content
	if g.frozen != nil {
		if same, err := g.restore(*g.frozen); err != nil || !same {
			g.content = former
			return false
		}
		g.frozen = nil
	}
	if former != nil {
		_ = former.Close() // it was only read
	}
	g.key, g.path, g.checked, g.gone = x.key, x.path, x.status, x.gone
	if !reading {
		g.close()
	}
	x.content = nil
	return true
}

// drop leaves a copy that has nothing more.
func (w *follower) drop(s *series, x suspect) {
	s.seen[x.key] = &passed{candidate: candidate{path: x.path, status: x.status}, head: fingerprintOf(x.start), copy: true}
	x.close()
	s.remove(x.file)
	w.dirty = true
}
