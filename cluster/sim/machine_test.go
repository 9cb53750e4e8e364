package sim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

const (
	journalDir = "/data/journal"
	commandDir = "/data/commands"
)

var (
	journalGroup = transport.GroupID{15: 1}
	commandGroup = transport.GroupID{15: 2}
)

// machine is a computer: a disk, and at most one process that lives.
type machine struct {
	w       *world
	id      string
	disk    *disk
	founder bool
	running sync.WaitGroup // of its processes, dead ones too

	mu       sync.Mutex // guards all below
	p        *process   // nil: none
	ending   *process   // the one that was told to end in order
	boots    int        // how often it got power
	born     int        // how often its disk was replaced: the copies on it are other members each time
	rotten   []int64    // journal positions at which bits of its disk were flipped
	rotLog   bool       // bits of the command log were flipped
	forgot   bool       // its disk has forgotten what it said to have
	logs     int        // command logs that were given up as damaged
	hopeless bool       // what is damaged is not in a sealed segment: the copy has to be replaced
	out      bool       // it is no member of the groups any more
	joined   bool       // it did not found the groups, but was added, or is being added
}

func newMachine(w *world, id string, seed int64) *machine {
	return &machine{w: w, id: id, disk: newDisk(seed, w.s.slowDisk), boots: 1}
}

// process is one life of the server on a machine.
type process struct {
	m     *machine
	mount *mount
	boot  int   // which one of its machine it runs in
	host  *host // nil: it is not on the network yet; guarded by m.mu
	trans *transport.Transport
	dead  atomic.Bool
	over  chan struct{} // closed when it is to end
	ended chan struct{} // closed when it has

	journal  atomic.Pointer[raftgroup.Group]
	commands atomic.Pointer[commandMember]
}

// commandMember is a member of the command group and its state machine.
type commandMember struct {
	*raftgroup.Machine
	*state
}

// on starts a process, if there is none and the machine is a member.
func (m *machine) on() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p != nil || !m.founder && !m.joined || m.out {
		return
	}
	p := &process{m: m, mount: m.disk.mount(), boot: m.boots, over: make(chan struct{}), ended: make(chan struct{})}
	m.p = p
	m.w.logf("%s starts", m.id)
	before := m.ending
	m.running.Go(func() {
		defer close(p.ended)
		if before != nil { // the directory and the port are still in use
			<-before.ended
		}
		if p.attach() {
			p.live()
		}
	})
}

// attach brings the process onto the network; false: it was killed before that.
func (p *process) attach() bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.dead.Load() {
		return false
	}
	p.m.w.net.boot(p.m.id)
	p.host = p.m.w.net.attach(p.m.id)
	return true
}

// end takes the machine's process away, if it has one.
func (m *machine) end() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.p
	m.p = nil
	return p
}

// serverID is the name of the machine's copies in their groups.
func (m *machine) serverID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.born == 0 {
		return m.id
	}
	return fmt.Sprint(m.id, ".", m.born)
}

// kill ends the process as kill -9 does: what it wrote stays in the system's cache.
func (m *machine) kill() {
	if p := m.end(); p != nil {
		p.die(true)
	}
}

// cut is a power cut.
func (m *machine) cut() {
	p := m.end()
	if p != nil {
		p.die(false)
	}
	if m.disk.isLying() {
		m.lose(p)
	}
	m.disk.cut()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boots++
}

// lose lets the disk's lies become losses if that is promised to be survived, and mends them before they are if not.
func (m *machine) lose(p *process) {
	if p == nil || !m.w.othersHave(p) {
		m.disk.comeClean()
		return
	}
	m.w.logf("%s forgets what its disk said to have", m.id)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot = true
}

// stop ends the process in order, and does not wait for it.
func (m *machine) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p != nil {
		m.w.logf("%s is told to stop", m.id)
		close(m.p.over)
		m.ending, m.p = m.p, nil
	}
}

// off is stop, and waits for the process to end.
func (m *machine) off() {
	m.stop()
	m.mu.Lock()
	last := m.ending
	m.mu.Unlock()
	if last != nil {
		<-last.ended
	}
}

// die is the end without warning.
func (p *process) die(power bool) {
	p.m.mu.Lock()
	p.dead.Store(true)
	host := p.host
	p.m.mu.Unlock()
	p.mount.kill()
	if host != nil {
		p.m.w.net.detach(host, power)
	}
	close(p.over)
}

// process returns the process that lives.
func (m *machine) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

// live opens the groups and keeps them until the process ends. A group that ended by itself is opened again, as an
// operator would do it by starting the process again.
func (p *process) live() {
	if err := p.listen(); err != nil {
		p.m.w.violated("%s cannot open its transport: %v", p.m.id, err)
		return
	}
	var groups sync.WaitGroup
	if p.m.w.s.journal {
		groups.Go(func() { p.keep("journal", p.openJournal) })
	}
	if p.m.w.s.commands {
		groups.Go(func() { p.keep("commands", p.openCommands) })
	}
	groups.Go(p.scrub)
	groups.Wait()
	if p.trans != nil {
		_ = p.trans.Close() // nothing is left to lose
	}
	if !p.dead.Load() {
		p.dead.Store(true)
		p.mount.kill()
		p.m.w.net.detach(p.host, true)
	}
}

func (p *process) listen() error {
	w := p.m.w
	if !w.s.real {
		return nil
	}
	l := newListener(p.m.id)
	w.net.mu.Lock()
	p.host.listener = l
	w.net.mu.Unlock()
	var err error
	p.trans, err = transport.Open(transport.Options{
		Cluster: "sim", Node: p.m.id, Listener: l, Silence: w.s.timeout, Timeout: w.s.timeout, Logger: p.logger(),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if p.dead.Load() {
				return nil, errKilled
			}
			c, err := w.net.dial(ctx, p.m.id, address)
			if err == nil && p.dead.Load() {
				c.(*conn).reset()
				return nil, errKilled
			}
			return c, err
		},
	})
	if err != nil {
		return err
	}
	for _, other := range w.all {
		p.trans.SetPeer(other.id, other.id)
	}
	return nil
}

// opened is a group, for who keeps it.
type opened interface {
	Done() <-chan struct{}
	Err() error
	Close() error
}

// keep opens a group again and again until the process ends.
func (p *process) keep(name string, open func() (opened, error)) {
	w := p.m.w
	for {
		g, err := open()
		if err == nil {
			select {
			case <-p.over:
			case <-g.Done():
				err = g.Err()
			}
			if cerr := g.Close(); cerr != nil && !p.dead.Load() {
				w.logf("%s closes its %s: %v", p.m.id, name, cerr)
			}
		}
		if p.dead.Load() || err == nil {
			return
		}
		w.logf("%s: its %s ended: %v", p.m.id, name, err)
		p.m.judge(err)
		wait := time.Second
		if errors.Is(err, raftgroup.ErrReopen) {
			wait = time.Millisecond
		}
		select {
		case <-p.over:
			return
		case <-time.After(wait):
		}
	}
}

// judge says whether an error may be: damage is, where a bit was flipped.
func (m *machine) judge(err error) {
	var damage *storage.DamageError
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.As(err, &damage) && len(m.rotten) == 0 && !m.rotLog && !m.forgot {
		m.w.violated("%s finds damage that nobody did: %v", m.id, err)
	}
}

func (p *process) options(dir string, group transport.GroupID) (raftgroup.Options, error) {
	w := p.m.w
	o := raftgroup.Options{
		Dir: dir, ID: p.m.serverID(), Timeout: w.s.timeout, CommitEvery: w.s.tellEvery, RetainEvery: 2 * time.Second, Logger: p.logger(),
		Journal: storage.Options{FS: p.mount, Boot: fmt.Sprint(p.m.id, p.boot), SegmentBytes: w.s.segment, Mode: w.s.mode, Retention: storage.Retention{Bytes: w.s.retention}},
	}
	if p.m.founder {
		o.Peers = w.peers
	}
	if p.trans == nil {
		o.Transport = w.net.wire(p.host, string(group[15]+'0'))
		return o, nil
	}
	g, err := p.trans.Group(group)
	o.Transport = g
	return o, err
}

func (p *process) openJournal() (opened, error) {
	o, err := p.options(journalDir, journalGroup)
	if err != nil {
		return nil, err
	}
	o.Copies, o.CareEvery = copies{p}, time.Second
	g, err := raftgroup.Open(o)
	if err != nil {
		closeTransport(o.Transport)
		p.mend(err)
		return nil, err
	}
	p.journal.Store(g)
	return &openedGroup{opened: g, forget: func() { p.journal.Store(nil) }}, nil
}

func (p *process) openCommands() (opened, error) {
	o, err := p.options(p.m.commands(), commandGroup)
	if err != nil {
		return nil, err
	}
	o.Journal.Retention, o.SnapshotEvery = storage.Retention{}, p.m.w.s.snapshotEvery
	st := newState()
	g, err := raftgroup.OpenMachine(o, st)
	if err != nil {
		closeTransport(o.Transport)
		p.giveUpLog(err)
		return nil, err
	}
	p.commands.Store(&commandMember{g, st})
	return &openedGroup{opened: g, forget: func() { p.commands.Store(nil) }}, nil
}

// commands is the directory of the machine's command log.
func (m *machine) commands() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(commandDir, m.logs)
}

// giveUpLog gives a command log up that does not open because of damage, as a node does it.
func (p *process) giveUpLog(err error) {
	var d *storage.DamageError
	if !errors.As(err, &d) || !p.m.mayLackCommands() {
		return
	}
	from := p.m.commands()
	to := fmt.Sprint(commandDir, p.m.logs+1)
	err = storage.Succeed(p.mount, from, to)
	if err == nil {
		err = raftgroup.CopySnapshots(p.mount, from, to)
	}
	if err == nil {
		err = p.mount.SyncDir(path.Dir(to))
	}
	p.m.w.logf("%s gives its command log up: %v", p.m.id, err)
	if err == nil {
		p.m.mu.Lock()
		p.m.logs++
		p.m.mu.Unlock()
	}
}

// mayLackCommands says whether the machine's command log may be damaged.
func (m *machine) mayLackCommands() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rotLog || m.forgot
}

// openedGroup is a group that nobody finds any more once it is closed.
type openedGroup struct {
	opened
	forget func()
}

// Close implements opened.
func (g *openedGroup) Close() error {
	g.forget()
	return g.opened.Close()
}

func closeTransport(t raft.Transport) {
	if c, ok := t.(raft.WithClose); ok {
		_ = c.Close() // it has no errors
	}
}

// logger puts what the process says into the trace.
func (p *process) logger() *slog.Logger { return slog.New(&handler{p: p}) }

type handler struct {
	p     *process
	attrs string
}

var _ slog.Handler = (*handler)(nil)

// Enabled implements slog.Handler.
func (h *handler) Enabled(context.Context, slog.Level) bool { return !h.p.dead.Load() }

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.p.m.w.logf("  %s says %s%s%s", h.p.m.id, r.Message, h.attrs, b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := h.attrs
	for _, a := range attrs {
		all += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return &handler{h.p, all}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(string) slog.Handler { return h }

// lacks says whether what a machine has acknowledged may be lost with its power, or with its disk, and has not come back.
func (m *machine) lacks() bool {
	m.mu.Lock()
	may := m.boots > 1 || m.forgot
	m.mu.Unlock()
	g := m.group("journal")
	return may && (g == nil || g.Journal().Doubt())
}
