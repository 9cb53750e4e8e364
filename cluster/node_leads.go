package cluster

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/strictjson"
)

// lead is who leads a journal, as it said itself.
type lead struct {
	metadata.StreamJournal
	Term   uint64  `json:"term"`
	InSync []int32 `json:"in_sync,omitempty"`
	node   int32
}

func (l lead) equal(other lead) bool {
	return l.StreamJournal == other.StreamJournal && l.Term == other.Term && slices.Equal(l.InSync, other.InSync)
}

// leadsCall tells all that the caller leads.
type leadsCall struct {
	Leads []lead `json:"leads"`
	// Closing says that the caller is about to close: it hands over what it leads and wants nothing back.
	Closing bool `json:"closing,omitempty"`
}

// leadTable is what other nodes have said that they lead.
type leadTable struct {
	changed chan struct{} // room for one; gets a value when somebody may lead who did not

	mu sync.Mutex
	by map[metadata.StreamJournal]lead // guarded by mu
	// closing are the nodes that said so last; guarded by mu
	closing map[int32]bool
	// said is what nodes said last, all since by was changed last; guarded by mu
	said map[int32][]byte
}

// heard takes over what a node says.
func (t *leadTable) heard(from string, body []byte) error {
	id, err := strconv.ParseInt(from, 10, 32)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if said := t.said[int32(id)]; said != nil && bytes.Equal(said, body) { // as mostly: it is told again and again
		return nil
	}
	var c leadsCall
	if err := strictjson.Decode(body, &c); err != nil {
		return err
	}
	if t.by == nil {
		t.by, t.closing = map[metadata.StreamJournal]lead{}, map[int32]bool{}
	}
	t.closing[int32(id)] = c.Closing
	if t.takeOver(int32(id), c.Leads) || t.said == nil {
		t.said = map[int32][]byte{} // what others said may count now
	}
	t.said[int32(id)] = bytes.Clone(body)
	return nil
}

// takeOver has a node lead what it says, and only that, and says whether that is different from what was known. The caller
// holds mu.
func (t *leadTable) takeOver(id int32, leads []lead) (changed bool) {
	before := map[metadata.StreamJournal]lead{}
	maps.DeleteFunc(t.by, func(k metadata.StreamJournal, l lead) bool {
		if l.node == id {
			before[k] = l
		}
		return l.node == id
	})
	for _, l := range leads {
		l.node = id
		if old, ok := t.by[l.StreamJournal]; ok && old.Term >= l.Term {
			continue
		}
		t.by[l.StreamJournal] = l
		was := before[l.StreamJournal]
		if was.Term != l.Term {
			t.ring()
		}
		changed = changed || !was.equal(l)
		delete(before, l.StreamJournal)
	}
	if len(before) > 0 {
		t.ring()
	}
	return changed || len(before) > 0
}

// ring has it looked who leads what.
func (t *leadTable) ring() {
	select {
	case t.changed <- struct{}{}:
	default: // it is looked anyway
	}
}

// isClosing says whether a node is about to close.
func (t *leadTable) isClosing(node int32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing[node]
}

func (t *leadTable) get(k metadata.StreamJournal) (lead, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.by[k]
	return l, ok
}
