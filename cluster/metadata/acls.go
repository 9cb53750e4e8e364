package metadata

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// ACL allows or denies one operation. The metadata only keeps ACLs: what they mean
// is the Kafka face's to say, whose words these are (kmsg's, as text).
type ACL struct {
	Resource   string `json:"resource"` // type: TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID...
	Name       string `json:"name"`     // of the resource; * is all
	Pattern    string `json:"pattern"`  // LITERAL or PREFIXED
	Principal  string `json:"principal"`
	Host       string `json:"host"`
	Operation  string `json:"operation"`
	Permission string `json:"permission"` // ALLOW or DENY
}

func (a ACL) compare(b ACL) int {
	return cmp.Or(
		strings.Compare(a.Resource, b.Resource), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Pattern, b.Pattern), strings.Compare(a.Principal, b.Principal),
		strings.Compare(a.Host, b.Host), strings.Compare(a.Operation, b.Operation),
		strings.Compare(a.Permission, b.Permission),
	)
}

// CreateACLs adds ACLs; those that are there stay.
type CreateACLs struct {
	ACLs []ACL `json:"acls"`
}

// DeleteACLs removes ACLs, as far as they are there.
type DeleteACLs struct {
	ACLs []ACL `json:"acls"`
}

func (m *State) createACLs(c *CreateACLs) Result {
	for _, a := range c.ACLs {
		m.acls[a] = struct{}{}
	}
	m.aclRevision++
	return Result{}
}

func (m *State) deleteACLs(c *DeleteACLs) Result {
	for _, a := range c.ACLs {
		delete(m.acls, a)
	}
	m.aclRevision++
	return Result{}
}

// ACLs returns all ACLs, sorted, and the revision that ACLRevision had then.
func (m *State) ACLs() ([]ACL, uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.sortedACLs(), m.aclRevision
}

func (m *State) sortedACLs() []ACL { return slices.SortedFunc(maps.Keys(m.acls), ACL.compare) }

// ACLRevision changes with every change of the ACLs. It is this process's own.
func (m *State) ACLRevision() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.aclRevision
}
