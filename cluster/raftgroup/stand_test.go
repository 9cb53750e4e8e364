package raftgroup_test

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/storage"
)

// Who hears its leader no more stands by its timer, and is refused while the others hear it. When it is told to stand all the same,
// as the transport does at the leader's death, it does so, and does not wait until its candidacy times out.
func TestACandidateThatWasRefusedStandsWhenItIsTold(t *testing.T) {
	t.Parallel()
	m := prepareMembers(t, time.Second, storage.Options{}, "a", "b", "c")
	m.net = newNetwork(t, transport.Options{Silence: -1, Timeout: time.Second}) // nobody is told by the transport
	for _, id := range []string{"a", "b", "c"} {
		m.start(id, m.peers)
	}
	old := m.leader("")
	m.wantEqual()
	deaf := m.others(old)[0]
	m.net.wire(old, deaf).Swallow(true, true)
	m.net.wire(deaf, old).Swallow(true, true)
	g := m.groups[deaf]
	m.until("it to be a candidate", func() bool { id, _ := g.Leader(); return id == "" })
	told := time.Time{}
	m.until("it to lead", func() bool {
		if _, self := g.Leader(); self {
			return true
		}
		if time.Since(told) > 2*time.Second { // a busy machine may take the first order's votes away
			told = time.Now()
			g.Options().Transport.(*transport.Group).Stand()
		}
		return false
	})
}
