package cluster

import (
	"cmp"
	"context"
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

type createACLs struct {
	ACLs []ACL `json:"acls"`
}

type deleteACLs struct {
	ACLs []ACL `json:"acls"`
}

func (m *Meta) createACLs(c *createACLs) result {
	for _, a := range c.ACLs {
		m.acls[a] = struct{}{}
	}
	m.aclRevision++
	return result{}
}

func (m *Meta) deleteACLs(c *deleteACLs) result {
	for _, a := range c.ACLs {
		delete(m.acls, a)
	}
	m.aclRevision++
	return result{}
}

// ACLs returns all ACLs, sorted, and the revision that ACLRevision had then.
func (m *Meta) ACLs() ([]ACL, uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.sortedACLs(), m.aclRevision
}

func (m *Meta) sortedACLs() []ACL { return slices.SortedFunc(maps.Keys(m.acls), ACL.compare) }

// ACLRevision changes with every change of the ACLs. It is this process's own.
func (m *Meta) ACLRevision() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.aclRevision
}

// CreateACLs adds ACLs; those that are there already stay as they are.
func (n *Node) CreateACLs(ctx context.Context, acls []ACL) error {
	_, err := n.proposer.propose(ctx, command{CreateACLs: &createACLs{acls}})
	return err
}

// DeleteACLs removes ACLs, as far as they are there.
func (n *Node) DeleteACLs(ctx context.Context, acls []ACL) error {
	_, err := n.proposer.propose(ctx, command{DeleteACLs: &deleteACLs{acls}})
	return err
}
