package pipeline

import (
	"time"
)

// A source that said nothing for frontierGone has gone without a word; its last
// promise then no longer holds the others back.
const frontierGone = time.Minute

// maxPromises is how many promises of a source are kept that the reader has yet to
// reach; of more the middle ones are forgotten, which costs nothing but detail.
const maxPromises = 64

// frontierBook knows from the records of FrontierStream how far the append clock of
// each stream has come, as seen by a reader that has read up to given offsets. It is a
// plain value: time is given to it.
type frontierBook struct {
	streams map[string]*streamFrontier
}

type streamFrontier struct {
	id      string
	sources map[string]*sourceFrontier // by pipeline and source
}

type sourceFrontier struct {
	promises []frontier // not reached by the reader, oldest first
	reached  int64      // the stamp of the last that was reached
	heard    time.Time
}

// newFrontierBook returns a book of the given streams.
func newFrontierBook(streams []StreamInfo) *frontierBook {
	b := &frontierBook{streams: map[string]*streamFrontier{}}
	for _, s := range streams {
		b.streams[s.Name] = &streamFrontier{id: s.ID, sources: map[string]*sourceFrontier{}}
	}
	return b
}

// note takes in a record of FrontierStream.
func (b *frontierBook) note(f frontier, now time.Time) {
	s := b.streams[f.Stream]
	if s == nil || s.id != f.StreamID {
		return
	}
	name := f.Pipeline + "/" + f.Source
	if f.Closed {
		delete(s.sources, name)
		return
	}
	src := s.sources[name]
	if src == nil {
		src = &sourceFrontier{}
		s.sources[name] = src
	}
	src.heard = now
	if len(src.promises) == maxPromises {
		src.promises = append(src.promises[:maxPromises/2], src.promises[maxPromises/2+1:]...)
	}
	src.promises = append(src.promises, f)
}

// stamp returns the stamp below which no record will be appended to the stream any
// more, for a reader that has read up to the given offsets; ok is false where no source
// makes a promise.
func (b *frontierBook) stamp(stream string, read func(number int32) int64, now time.Time) (stamp int64, ok bool) {
	s := b.streams[stream]
	if s == nil {
		return 0, false
	}
	for name, src := range s.sources {
		if now.Sub(src.heard) > frontierGone {
			delete(s.sources, name)
			continue
		}
		src.settle(read)
		if !ok || src.reached < stamp {
			stamp = src.reached
		}
		ok = true
	}
	return stamp, ok
}

// settle moves on to the last promise whose records the reader has seen.
func (s *sourceFrontier) settle(read func(number int32) int64) {
	n := 0
	for n < len(s.promises) && s.promises[n].isReached(read) {
		s.reached = max(s.reached, s.promises[n].Stamp)
		n++
	}
	s.promises = s.promises[n:]
}

func (f *frontier) isReached(read func(number int32) int64) bool {
	for p, end := range f.Ends {
		if read(int32(p)) < end {
			return false
		}
	}
	return true
}
