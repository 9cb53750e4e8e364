package reorder

import (
	"math/bits"
	"slices"
)

const (
	pageBits = 9 // log2 of the positions in a page
	pageMask = 1<<pageBits - 1
)

// A page says which of 512 positions are held.
type page struct {
	number int64 // position >> pageBits
	first  int64 // the first position pushed in this page
	stamp  int64 // the partition's stamp before first, after the running maximum
	// plateau: a stamp in this page did not rise, so the running maximum at a
	// position inside the page cannot be told from stamp alone.
	plateau bool
	held    [1 << pageBits / 64]uint64
}

func (p *page) empty() bool {
	for _, w := range p.held {
		if w != 0 {
			return false
		}
	}
	return true
}

func (p *page) release(position int64) {
	p.held[position&pageMask>>6] &^= 1 << (position & 63)
}

// positions is the set of the positions of a partition that are held, one bit
// each between the lowest held and the last. Stretches of 512 positions without a
// record take no page.
type positions struct {
	pages []page // rising; pages before head are forgotten
	head  int
}

// note tells of a record that was read, held or not. prev is the partition's
// stamp before it, stamp its own.
func (ps *positions) note(position, prev, stamp int64) {
	n := len(ps.pages)
	if n == ps.head || ps.pages[n-1].number != position>>pageBits {
		ps.trim()
		ps.pages = append(ps.pages, page{number: position >> pageBits, first: position, stamp: prev})
		return
	}
	if stamp <= prev {
		ps.pages[n-1].plateau = true
	}
}

// hold marks the position noted last.
func (ps *positions) hold(position int64) {
	pg := &ps.pages[len(ps.pages)-1]
	pg.held[position&pageMask>>6] |= 1 << (position & 63)
}

// find looks where the page is if none is missing in between.
func (ps *positions) find(number int64) *page {
	if i := int64(ps.head) + number - ps.pages[ps.head].number; i < int64(len(ps.pages)) {
		if pg := &ps.pages[i]; pg.number == number {
			return pg
		}
	}
	i, ok := slices.BinarySearchFunc(ps.pages[ps.head:], number, func(p page, n int64) int {
		return int(p.number - n)
	})
	if !ok {
		panic("reorder: a released position was never held")
	}
	return &ps.pages[ps.head+i]
}

// trim forgets pages at the head that hold nothing, and reuses their room. The
// last page stays: its stamp is still needed.
func (ps *positions) trim() {
	for ps.head < len(ps.pages)-1 && ps.pages[ps.head].empty() {
		ps.head++
	}
	if len(ps.pages) == cap(ps.pages) && ps.head > len(ps.pages)/2 {
		n := copy(ps.pages, ps.pages[ps.head:])
		ps.pages, ps.head = ps.pages[:n], 0
	}
}

// lowest returns the lowest position held and its page, or nil.
func (ps *positions) lowest() (int64, *page) {
	ps.trim()
	for i := ps.head; i < len(ps.pages); i++ {
		pg := &ps.pages[i]
		for w, word := range pg.held {
			if word != 0 {
				return pg.number<<pageBits + int64(w<<6+bits.TrailingZeros64(word)), pg
			}
		}
	}
	return 0, nil
}
