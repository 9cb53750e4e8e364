package raftgroup

import (
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// OpenMirror opens a journal that is a copy of another one: frames come from there as they are, by
// [storage.Journal.StoreReceived], and no raft runs on it, so nothing else is ever appended. What is in it is committed: the
// source gives nothing that is not.
func OpenMirror(o Options) (*Group, error) {
	o = o.withDefaults()
	o.Journal.Commands = false
	o.Journal.ReadDurable = o.Journal.Mode == storage.Replicated // what was shown is not forgotten in a power cut
	g := &Group{}
	g.care.init(o.Figures)
	o.Journal.OnDamage, o.Journal.OnFail = func(*storage.DamageError) { g.care.ring() }, g.failed
	j, err := storage.Open(o.Dir, o.Journal)
	if err != nil {
		return nil, err
	}
	g.queue.init(&g.member, o.QueueBytes, true)
	g.o, g.journal, g.store = o, j, &store{Journal: j}
	g.alone = newAloneTransport(raft.ServerAddress(o.ID))
	g.stopping, g.done = make(chan struct{}), make(chan struct{})
	j.Commit(j.End().Index)
	g.watch()
	g.doChores()
	return g, nil
}

// mirrors says whether the member only copies.
func (m *member) mirrors() bool { return m.raft == nil }
