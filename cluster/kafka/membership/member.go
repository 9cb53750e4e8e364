package membership

import (
	"slices"
	"time"
)

// member is one member of a group. Guarded by the group's lock.
type member struct {
	id         string
	instance   string
	clientID   string
	host       string
	session    time.Duration
	rebalance  time.Duration
	protocols  []Protocol
	assignment []byte

	// joining and syncing take the answer while the member waits for it; they
	// have room for one, so that answering never blocks.
	joining chan Joined
	syncing chan Synced

	expiry *time.Timer
}

func newMember(id string, j Join) *member {
	m := &member{id: id, instance: j.InstanceID}
	m.update(j)
	return m
}

func (m *member) update(j Join) {
	m.clientID, m.host = j.ClientID, j.Host
	m.session, m.rebalance = j.Session, j.Rebalance
	m.protocols = j.Protocols
}

// sameProtocols reports whether the member would tell the leader the same.
func (m *member) sameProtocols(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

func (m *member) supports(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == protocol })
}

func (m *member) answerJoin(a Joined) {
	if m.joining != nil {
		m.joining <- a
		m.joining = nil
	}
}

func (m *member) answerSync(a Synced) {
	if m.syncing != nil {
		m.syncing <- a
		m.syncing = nil
	}
}

// waits reports whether the member waits for an answer. Its session cannot end
// meanwhile: it has no way to send a heartbeat.
func (m *member) waits() bool { return m.joining != nil || m.syncing != nil }

func (m *member) stop() {
	if m.expiry != nil {
		m.expiry.Stop()
	}
}
