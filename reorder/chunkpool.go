package reorder

const (
	chunkLen   = 32
	blockBits  = 6 // log2 of the chunks in a block
	blockMask  = 1<<blockBits - 1
	keepBlocks = 32 // an empty pool above this size is given back to the runtime
)

// A chunk is one link of a chain of items. All but the last of a chain are full.
type chunk[P any] struct {
	items [chunkLen]Item[P]
	next  int32
}

// A chunkPool allots chunks by number. Links are numbers rather than pointers so
// that the collector need not follow them; blocks never move, so growing copies
// nothing.
type chunkPool[P any] struct {
	blocks [][]chunk[P]
	free   int32 // head of the list of free chunks, or none
	next   int32 // first chunk never used
	live   int32
	scrub  bool
}

func (p *chunkPool[P]) at(id int32) *chunk[P] {
	return &p.blocks[id>>blockBits][id&blockMask]
}

func (p *chunkPool[P]) get() int32 {
	p.live++
	id := p.free
	if id != none {
		ch := p.at(id)
		p.free = ch.next
		ch.next = none
		return id
	}
	id = p.next
	p.next++
	if int(id>>blockBits) == len(p.blocks) {
		p.blocks = append(p.blocks, make([]chunk[P], 1<<blockBits))
	}
	p.at(id).next = none
	return id
}

// put frees a chunk. The most recently freed is used first, while it is in cache.
func (p *chunkPool[P]) put(id int32) {
	ch := p.at(id)
	if p.scrub {
		scrub(ch.items[:])
	}
	ch.next = p.free
	p.free = id
	p.live--
	if p.live == 0 && len(p.blocks) > keepBlocks {
		p.blocks, p.free, p.next = nil, none, 0
	}
}

// scrub lets go of the payloads.
func scrub[P any](items []Item[P]) {
	var zero P
	for i := range items {
		items[i].Payload = zero
	}
}
