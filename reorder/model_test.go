package reorder_test

import (
	"math"
	"sort"

	"github.com/daybook-data/daybook/reorder"
)

// An event is a record of a scripted or random input.
type event struct {
	part, source string
	pos, j, ts   int64 // j as written, before the running maximum
	size         uint32
}

// An output is one record that came out, in a form that compares.
type output struct {
	Part, Source   string
	Pos, Ts        int64
	Time, Stamp    int64
	Late           int64
	Forced, Passed bool
	Clamped        bool
}

// outputs are the three streams of a run.
type outputs struct{ Main, Late, Quarantine []output }

// A model is the contract in the simplest form: lists, searched and sorted at every
// step. It lets records go the moment the watermark passes them, knows no slots, no
// settling and no restarts, and shares no code with the buffer.
type model struct {
	o             reorder.Options
	b, idle, hold int64
	live          map[string]bool // "partition\x00producer"
	assigned      map[string]bool // live only since it was assigned
	max, lastJ    map[string]int64
	own           map[string]string // partition -> its own key
	stamps        map[string]int64
	held          []modelRecord
	clock, w, top int64
	out           outputs
}

type modelRecord struct {
	event
	t, j    int64
	clamped bool
}

const minusInf = math.MinInt64

func newModel(o reorder.Options, parts []string) *model {
	m := &model{
		o: o, b: o.MaxOutOfOrder.Microseconds(), idle: o.IdleAfter.Microseconds(), hold: o.Hold.Microseconds(),
		live: map[string]bool{}, assigned: map[string]bool{}, max: map[string]int64{}, lastJ: map[string]int64{},
		own: map[string]string{}, stamps: map[string]int64{},
		clock: minusInf, w: minusInf, top: minusInf,
	}
	for _, p := range parts {
		k := p + "\x00"
		m.own[p] = k
		m.live[k], m.assigned[k], m.max[k] = true, true, minusInf
	}
	return m
}

// run pushes events that are in canonical order and ends the input.
func (m *model) run(events []event, end bool) outputs {
	for _, e := range events {
		m.push(e)
	}
	if end {
		m.w = math.MaxInt64
		m.release(false)
	}
	return m.out
}

func (m *model) push(e event) {
	j := max(e.j, m.stamps[e.part], m.clock)
	m.stamps[e.part] = j
	if m.clock == minusInf {
		for k := range m.live {
			m.lastJ[k] = j
		}
	}
	m.timers(j)
	m.clock = j
	m.accept(e, j)
	for m.bytes() > m.o.CapBytes {
		least := int64(math.MaxInt64)
		for _, r := range m.held {
			least = min(least, r.t)
		}
		m.force(least)
	}
}

func (m *model) accept(e event, j int64) {
	k := e.part + "\x00" + e.source
	if _, ok := m.max[k]; !ok {
		m.max[k] = minusInf
	}
	future, past := m.o.FutureLimit.Microseconds(), m.o.PastLimit.Microseconds()
	if e.ts > j+future || e.ts < j-past {
		m.implausible(e, k, j)
		return
	}
	t := e.ts
	if m.o.Order == reorder.OrderSource {
		t = max(t, m.max[k])
	}
	m.lastJ[k], m.assigned[k] = j, false
	if t < m.w {
		m.late(modelRecord{event: e, t: e.ts, j: j})
	} else {
		m.max[k] = max(m.max[k], e.ts)
		m.top = max(m.top, e.ts)
		m.held = append(m.held, modelRecord{event: e, t: t, j: j})
	}
	if !m.live[k] {
		m.live[k] = true
		if own := m.own[e.part]; own != k && m.assigned[own] {
			m.live[own], m.assigned[own] = false, false
		}
	}
	m.watermark()
}

func (m *model) implausible(e event, k string, j int64) {
	r := modelRecord{event: e, t: j, j: j, clamped: true}
	switch {
	case m.o.Implausible == reorder.Side:
		m.out.Quarantine = append(m.out.Quarantine, output{Part: e.part, Source: e.source, Pos: e.pos, Ts: e.ts, Time: e.ts, Stamp: j})
		return
	case m.o.Order == reorder.OrderSource && m.max[k] != minusInf && m.max[k] >= m.w:
		r.t = m.max[k]
	case m.o.Order == reorder.OrderSource:
		m.emit(m.below(r), false)
		return
	case r.t < m.w:
		m.late(r)
		return
	}
	m.held = append(m.held, r)
	if !m.anyLive() {
		m.allIdle()
	}
}

func (m *model) below(r modelRecord) modelRecord {
	r.t = m.w
	if m.w != minusInf {
		r.t--
	}
	return r
}

func (m *model) anyLive() bool {
	for _, l := range m.live {
		if l {
			return true
		}
	}
	return false
}

func (m *model) allIdle() {
	if m.top != minusInf {
		m.w = max(m.w, m.top+1)
	}
	m.release(false)
	m.sort(m.held)
	kept := m.held
	m.held = nil
	for _, r := range kept {
		m.emit(m.below(r), false)
	}
}

func (m *model) watermark() {
	least := int64(math.MaxInt64)
	for k, l := range m.live {
		if l {
			least = min(least, m.max[k])
		}
	}
	if least != minusInf && least != math.MaxInt64 {
		m.w = max(m.w, least-m.b)
	}
	m.release(false)
}

// timers runs what is due up to j, one due time after the other.
func (m *model) timers(j int64) {
	for {
		idleAt, holdAt := int64(math.MaxInt64), int64(math.MaxInt64)
		for k, l := range m.live {
			if l {
				idleAt = min(idleAt, m.lastJ[k]+m.idle)
			}
		}
		var oldest modelRecord
		for _, r := range m.held {
			if at := r.j + m.hold; at < holdAt || at == holdAt && oldest.isClampedAfter(r, m.o.Order) {
				holdAt, oldest = at, r
			}
		}
		switch {
		case min(idleAt, holdAt) > j || min(idleAt, holdAt) == math.MaxInt64:
			return
		case idleAt <= holdAt:
			for k, l := range m.live {
				if l && m.lastJ[k]+m.idle <= idleAt {
					m.live[k], m.assigned[k] = false, false
				}
			}
			if m.anyLive() {
				m.watermark()
			} else {
				m.allIdle()
			}
		case oldest.clamped && m.o.Order == reorder.OrderEvent:
			m.remove(oldest)
			m.emit(m.below(oldest), true)
		default:
			m.force(oldest.t)
		}
	}
}

// isClampedAfter says that of two records with the same stamp, a regular one is
// looked at before a clamped one, and clamped ones by name and position.
func (r modelRecord) isClampedAfter(other modelRecord, order reorder.Order) bool {
	if !r.clamped || order == reorder.OrderSource {
		return false
	}
	return !other.clamped || less(other, r)
}

func (m *model) remove(r modelRecord) {
	for i := range m.held {
		if m.held[i].part == r.part && m.held[i].pos == r.pos {
			m.held = append(m.held[:i:i], m.held[i+1:]...)
			return
		}
	}
}

func (m *model) force(t int64) {
	m.w = max(m.w, t+1)
	m.release(true)
}

func (m *model) release(forced bool) {
	var out, kept []modelRecord
	for _, r := range m.held {
		if r.t < m.w {
			out = append(out, r)
		} else {
			kept = append(kept, r)
		}
	}
	m.held = kept
	m.sort(out)
	for _, r := range out {
		m.emit(r, forced)
	}
}

func (m *model) sort(rs []modelRecord) {
	sort.SliceStable(rs, func(i, k int) bool { return less(rs[i], rs[k]) })
}

func less(a, b modelRecord) bool {
	an, bn := a.source, b.source
	if an == "" {
		an = a.part
	}
	if bn == "" {
		bn = b.part
	}
	switch {
	case a.t != b.t:
		return a.t < b.t
	case an != bn:
		return an < bn
	case a.part != b.part:
		return a.part < b.part
	}
	return a.pos < b.pos
}

func (m *model) late(r modelRecord) {
	o := output{Part: r.part, Source: r.source, Pos: r.pos, Ts: r.ts, Time: r.t, Stamp: r.j, Late: m.w - r.t, Clamped: r.clamped}
	switch m.o.Late {
	case reorder.Side:
		m.out.Late = append(m.out.Late, o)
	case reorder.Pass:
		o.Passed = true
		m.out.Main = append(m.out.Main, o)
	}
}

func (m *model) emit(r modelRecord, forced bool) {
	m.out.Main = append(m.out.Main, output{Part: r.part, Source: r.source, Pos: r.pos, Ts: r.ts, Time: r.t, Stamp: r.j, Forced: forced, Clamped: r.clamped})
}

func (m *model) bytes() int64 {
	var n int64
	for _, r := range m.held {
		n += 64 + int64(r.size)
	}
	return n
}

// canonical sorts events of several partitions, each in order, as C1 says.
func canonical(events []event) []event {
	out := append([]event(nil), events...)
	stamps := map[string]int64{}
	reach := make(map[[2]any]int64, len(out))
	for _, e := range out {
		stamps[e.part] = max(stamps[e.part], e.j)
		reach[[2]any{e.part, e.pos}] = stamps[e.part]
	}
	sort.SliceStable(out, func(i, k int) bool {
		a, b := out[i], out[k]
		ja, jb := reach[[2]any{a.part, a.pos}], reach[[2]any{b.part, b.pos}]
		switch {
		case ja != jb:
			return ja < jb
		case a.part != b.part:
			return a.part < b.part
		}
		return a.pos < b.pos
	})
	return out
}
