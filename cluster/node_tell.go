package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/retry"
)

const (
	// leadsEvery is how often a node looks what it leads while that changes, and for leadsSettle after; leadsSeldom is how
	// often at other times, as copies fall behind and catch up. The others are told at changes, and each leadsAgain.
	leadsEvery  = 50 * time.Millisecond
	leadsSettle = time.Second
	leadsSeldom = time.Second
	leadsAgain  = 2 * time.Second
	// tellWithin bounds the wait for a node that is told.
	tellWithin = time.Second
)

// tellLeads tells the other nodes what this one leads, and who watches partitions of new leaders, until the node closes.
func (n *Node) tellLeads() {
	t := leadTeller{n: n, took: map[int32]uint64{}, busy: map[int32]bool{}}
	defer t.calls.Wait()
	var last []lead
	var told, rang time.Time
	for {
		now := n.journals.led(len(last))
		changed := !slices.EqualFunc(now, last, lead.equal)
		if changed {
			rang = time.Now()
		}
		if changed || time.Since(told) >= leadsAgain {
			last, told = now, time.Now()
			t.say(n.leadsBody(now))
		}
		t.tell()
		if !retry.Pause(n.ctx, leadsEvery) {
			return
		}
		if time.Since(rang) < leadsSettle {
			continue
		}
		select {
		case <-n.leads.changed:
			rang = time.Now()
		case <-time.After(leadsSeldom):
		case <-n.ctx.Done():
			return
		}
	}
}

// leadTeller tells each of the other nodes the same, one call at a time: one that does not answer keeps nobody else
// waiting.
type leadTeller struct {
	n     *Node
	calls sync.WaitGroup

	mu      sync.Mutex // guards all below
	body    []byte
	version uint64           // of body
	took    map[int32]uint64 // the version that a node has answered to
	busy    map[int32]bool   // it is being told
}

// say changes what is told.
func (t *leadTeller) say(body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.body = body
	t.version++
}

// tell tells who does not know it yet.
func (t *leadTeller) tell() {
	for _, m := range t.n.meta.Members() {
		if m.ID != t.n.id && t.n.Up(m.ID) {
			t.tellNode(m.ID)
		}
	}
}

func (t *leadTeller) tellNode(id int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] || t.took[id] == t.version {
		return
	}
	t.busy[id] = true
	body, version := t.body, t.version
	t.calls.Go(func() {
		err := t.n.tellNode(t.n.ctx, id, body)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.busy[id] = false
		if err == nil { // else it is told again soon
			t.took[id] = version
		}
	})
}

// tellAll tells the other nodes what this one leads, and waits until they know or cannot be told.
func (n *Node) tellAll(ctx context.Context, leads []lead) {
	body := n.leadsBody(leads)
	var all sync.WaitGroup
	for _, m := range n.meta.Members() {
		if m.ID != n.id && n.Up(m.ID) {
			all.Go(func() { _ = n.tellNode(ctx, m.ID, body) }) // tellLeads tells it again
		}
	}
	all.Wait()
}

func (n *Node) leadsBody(leads []lead) []byte {
	body, err := json.Marshal(leadsCall{Leads: leads, Closing: n.closing.Load()})
	if err != nil {
		panic(err) // there is nothing in it that has no JSON
	}
	return body
}

func (n *Node) tellNode(ctx context.Context, id int32, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	return n.callNode(ctx, id, callLeads, body, nil)
}
