package sim_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// settings are what a seed decides before anything runs.
type settings struct {
	machines  int // that exist
	founders  int // that found the groups
	mode      storage.Mode
	real      bool // the real transport, over connections in memory
	journal   bool
	commands  bool
	segment   int64
	retention int64 // bytes; 0: everything is kept
	timeout   time.Duration
	// tellEvery is how often a leader tells what is committed, and tries a member that does not answer; 0: as by default.
	tellEvery time.Duration
	slowDisk  time.Duration // the most that a sync takes
	weather   weather
	kinds     []kind // of faults
	often     time.Duration
	length    time.Duration // of the time with faults
	large     bool          // some batches are large
	// snapshotEvery is after how many commands a state machine takes a snapshot; twice as many are kept.
	snapshotEvery uint64
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.Intn(len(of))] }

func settingsOf(rng *rand.Rand) settings {
	s := settings{
		founders:  pick(rng, 3, 3, 3, 5),
		mode:      pick(rng, storage.Durable, storage.Replicated),
		real:      rng.Intn(2) == 0,
		segment:   pick[int64](rng, 8<<10, 16<<10, 64<<10),
		timeout:   pick(rng, time.Second, time.Second, 2*time.Second),
		slowDisk:  pick(rng, time.Millisecond, 5*time.Millisecond, 30*time.Millisecond),
		often:     pick(rng, 500*time.Millisecond, 1500*time.Millisecond, 4*time.Second),
		length:    pick(rng, 15*time.Second, 30*time.Second),
		large:     rng.Intn(4) == 0,
		retention: pick[int64](rng, 0, 0, 40<<10),
	}
	s.weather = weather{
		least:    pick(rng, 100*time.Microsecond, time.Millisecond, 10*time.Millisecond),
		lost:     pick(rng, 0, 0, 0.01, 0.08),
		twice:    pick(rng, 0, 0.02, 0.2),
		late:     pick(rng, 0, 0, 0.02),
		disorder: rng.Intn(4) == 0,
	}
	s.weather.most = s.weather.least * time.Duration(pick(rng, 1, 2, 10))
	s.tellEvery = pick(rng, 0, 0, 20*time.Millisecond)
	s.weather.refuses = rng.Intn(2) == 0
	s.machines = s.founders
	switch rng.Intn(4) {
	case 0:
		s.commands = true
	case 1:
		s.journal, s.commands = true, true
	default:
		s.journal = true
	}
	for _, k := range allKinds { // few kinds at a time go deeper than all at once
		if rng.Intn(3) == 0 {
			s.kinds = append(s.kinds, k)
		}
	}
	s.snapshotEvery = pick[uint64](rng, 8192, 12, 150)
	if slices.Contains(s.kinds, changeMembers) {
		s.machines = s.founders + 1
	}
	return s
}

func (s settings) String() string {
	net := "messages"
	if s.real {
		net = "real transport"
	}
	return fmt.Sprintf("%d of %d machines, mode %v, %s, journal %v, commands %v, segments %d, retention %d, timeout %v, telling %v, disk %v, network %+v, faults %v every %v for %v, large %v, snapshots %d",
		s.founders, s.machines, s.mode, net, s.journal, s.commands, s.segment, s.retention, s.timeout, s.tellEvery, s.slowDisk, s.weather, s.kinds, s.often, s.length, s.large, s.snapshotEvery)
}

// world is one simulation.
type world struct {
	t     *testing.T
	seed  int64
	s     settings
	net   *network
	all   []*machine
	peers []raft.Server
	began time.Time
	trace *trace
	facts facts
	plan  []fault
	hooks hooks

	clients   sync.WaitGroup
	striking  sync.WaitGroup // faults that end by themselves
	usurping  atomic.Bool    // one of them is of the kind usurp
	swapping  bool           // a fault of the kind swap has not ended
	stop      chan struct{}  // closed when the clients have to end
	changing  chan struct{}  // holds a token while members are exchanged
	replacing sync.Mutex     // held while a copy that cannot be mended is replaced
}

// hooks break the system on purpose, so that the simulation can be seen to notice.
type hooks struct {
	lyingDisks bool // syncs do nothing
	eager      bool // clients take an append for acknowledged once it was sent
}

// trace is what happened, for who has to understand a failure. It is written inside the bubble and read outside.
type trace struct {
	mu    sync.Mutex // guards all below
	lines []string
	bad   []string
}

func (r *trace) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// violated notes that a promise was broken.
func (w *world) violated(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.logf("VIOLATION: %s", line)
	w.trace.mu.Lock()
	defer w.trace.mu.Unlock()
	if len(w.trace.bad) < 20 {
		w.trace.bad = append(w.trace.bad, line)
	}
}

func (w *world) logf(format string, args ...any) {
	w.trace.add(fmt.Sprintf("%10.4f ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...))
}

func (r *trace) violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bad)
}

// String is the last lines of the trace.
func (r *trace) String() string { return r.tail(400) }

func (r *trace) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines[max(0, len(r.lines)-n):], "\n")
}

// newWorld makes a world. It must be called, and run, in a bubble.
func newWorld(t *testing.T, seed int64, s settings, tr *trace, h hooks) *world {
	w := &world{t: t, seed: seed, s: s, trace: tr, began: time.Now(), hooks: h, stop: make(chan struct{}), changing: make(chan struct{}, 1)}
	w.facts.init()
	w.net = newNetwork(seed, s.weather)
	for i := range s.machines {
		id := string(rune('a' + i))
		m := newMachine(w, id, seed*31+int64(i))
		m.disk.lies = h.lyingDisks
		w.all = append(w.all, m)
		if i < s.founders {
			w.peers = append(w.peers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
			m.founder = true
		}
	}
	return w
}

// run lives the world's life: it starts, faults come and go, all heals, and what was promised is checked.
func (w *world) run() {
	w.logf("seed %d: %v", w.seed, w.s)
	for _, m := range w.all {
		if m.founder {
			m.on()
		}
	}
	w.startClients()
	w.suffer(rand.New(rand.NewSource(w.seed)))
	w.heal()
	w.serve()
	close(w.stop)
	w.clients.Wait()
	if w.converge() {
		w.check()
	}
	for _, m := range w.all {
		m.off()
	}
	for _, m := range w.all {
		m.running.Wait()
	}
	w.net.close()
}

// sleep lets fake time pass.
func (w *world) sleep(d time.Duration) { time.Sleep(d) }

// until polls a state, for at most d of fake time.
func (w *world) until(d time.Duration, reached func() bool) bool {
	for end := time.Now().Add(d); !reached(); w.sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
