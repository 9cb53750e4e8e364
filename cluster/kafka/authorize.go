package kafka

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// clusterName is the one resource of type CLUSTER.
const clusterName = "kafka-cluster"

// authorizer decides by the ACLs of the metadata, as Kafka's own does: deny beats
// allow, and what no ACL allows is denied. It is safe for concurrent use.
type authorizer struct {
	meta   *metadata.State
	supers map[string]bool // principals that no ACL is asked for
	rules  atomic.Pointer[ruleSet]
}

func newAuthorizer(meta *metadata.State, supers []string) *authorizer {
	a := &authorizer{meta: meta, supers: map[string]bool{}}
	for _, s := range supers {
		a.supers[s] = true
	}
	return a
}

// ruleSet is a revision of the ACLs in the form in which they are looked up. It is
// immutable.
type ruleSet struct {
	revision uint64
	kinds    map[kmsg.ACLResourceType]*kindRules
}

type kindRules struct {
	literal  map[string][]rule // by the resource's name; * stands for all
	prefixed []rule
}

// rule is one ACL.
type rule struct {
	name            string // of the resource, or its beginning
	principal, host string
	operation       kmsg.ACLOperation
	deny, prefix    bool
}

// current returns the rules as the metadata has them now.
func (a *authorizer) current() *ruleSet {
	if r := a.rules.Load(); r != nil && r.revision == a.meta.ACLRevision() {
		return r
	}
	acls, revision := a.meta.ACLs()
	r := &ruleSet{revision: revision, kinds: map[kmsg.ACLResourceType]*kindRules{}}
	for _, acl := range acls {
		b := bindingOf(acl)
		k := r.kinds[b.resource]
		if k == nil {
			k = &kindRules{literal: map[string][]rule{}}
			r.kinds[b.resource] = k
		}
		one := rule{acl.Name, acl.Principal, acl.Host, b.operation, b.permission == kmsg.ACLPermissionTypeDeny, b.pattern == kmsg.ACLResourcePatternTypePrefixed}
		if one.prefix {
			k.prefixed = append(k.prefixed, one)
		} else {
			k.literal[acl.Name] = append(k.literal[acl.Name], one)
		}
	}
	a.rules.Store(r)
	return r
}

// allows reports whether who may do op to a resource.
func (a *authorizer) allows(who identity, op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	if a.supers[who.principal] {
		return true
	}
	k := a.current().kinds[kind]
	if k == nil {
		return false
	}
	allowed := false
	for _, rules := range [][]rule{k.literal[name], k.literal["*"], k.prefixesOf(name)} {
		for _, r := range rules {
			if !r.concerns(who) {
				continue
			}
			if r.deny && r.covers(op) {
				return false
			}
			allowed = allowed || !r.deny && r.grants(op)
		}
	}
	return allowed
}

// prefixesOf returns the prefixed rules that concern a name.
func (k *kindRules) prefixesOf(name string) []rule {
	var rules []rule
	for _, r := range k.prefixed {
		if strings.HasPrefix(name, r.name) {
			rules = append(rules, r)
		}
	}
	return rules
}

func (r rule) concerns(who identity) bool {
	return (r.principal == who.principal || r.principal == "User:*") && (r.host == "*" || r.host == who.host)
}

func (r rule) covers(op kmsg.ACLOperation) bool {
	return r.operation == op || r.operation == kmsg.ACLOperationAll
}

// grants is covers for a rule that allows: who may read, write, delete or alter a
// resource may also know of it.
func (r rule) grants(op kmsg.ACLOperation) bool {
	switch op {
	case kmsg.ACLOperationDescribe:
		switch r.operation {
		case kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDelete, kmsg.ACLOperationAlter:
			return true
		}
	case kmsg.ACLOperationDescribeConfigs:
		if r.operation == kmsg.ACLOperationAlterConfigs {
			return true
		}
	}
	return r.covers(op)
}

// allowsAny reports whether there can be a resource of the kind to which who may do
// op: one that a rule allows and no denial hides whole.
func (a *authorizer) allowsAny(who identity, op kmsg.ACLOperation, kind kmsg.ACLResourceType) bool {
	if a.supers[who.principal] {
		return true
	}
	k := a.current().kinds[kind]
	if k == nil {
		return false
	}
	var all, denied []span
	for name, rules := range k.literal {
		for _, r := range rules {
			all = append(all, span{r, name != "*"})
		}
	}
	for _, r := range k.prefixed {
		all = append(all, span{r, false})
	}
	all = slices.DeleteFunc(all, func(s span) bool { return !s.concerns(who) })
	for _, s := range all {
		if s.deny && s.covers(op) {
			denied = append(denied, s)
		}
	}
	return slices.ContainsFunc(all, func(s span) bool {
		return !s.deny && s.grants(op) && !slices.ContainsFunc(denied, func(d span) bool { return d.hides(s) })
	})
}

// span is a rule and whether it is about one name only, or all that begin so.
type span struct {
	rule
	exact bool
}

// start is what the names of a span begin with.
func (s span) start() string {
	if !s.exact && s.name == "*" && !s.prefix {
		return ""
	}
	return s.name
}

// hides reports whether every name of s is a name of d.
func (d span) hides(s span) bool {
	if d.exact {
		return s.exact && s.name == d.name
	}
	return strings.HasPrefix(s.start(), d.start())
}

// may reports whether the client may do op to a resource.
func (c *call) may(op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	a := c.conn.server.auth
	return a == nil || c.conn.who.trusted || a.allows(c.conn.who, op, kind, name)
}

// topic returns TOPIC_AUTHORIZATION_FAILED unless the client may do op to a topic. A
// tag is a part of its stream.
func (c *call) topic(op kmsg.ACLOperation, name string) error {
	name, _ = metadata.SplitTag(name)
	if !c.may(op, kmsg.ACLResourceTypeTopic, name) {
		return kerr.TopicAuthorizationFailed
	}
	return nil
}

// group returns GROUP_AUTHORIZATION_FAILED unless the client may do op to a group.
func (c *call) group(op kmsg.ACLOperation, id string) error {
	if !c.may(op, kmsg.ACLResourceTypeGroup, id) {
		return kerr.GroupAuthorizationFailed
	}
	return nil
}

// txn returns TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the client may do op to a
// transactional id.
func (c *call) txn(op kmsg.ACLOperation, id string) error {
	if !c.may(op, kmsg.ACLResourceTypeTransactionalId, id) {
		return kerr.TransactionalIDAuthorizationFailed
	}
	return nil
}

// cluster returns CLUSTER_AUTHORIZATION_FAILED unless the client may do op to the
// cluster.
func (c *call) cluster(op kmsg.ACLOperation) error {
	if !c.may(op, kmsg.ACLResourceTypeCluster, clusterName) {
		return kerr.ClusterAuthorizationFailed
	}
	return nil
}

// mayCreate refuses to create a topic for whom neither the cluster's ACLs nor the
// topic's allow it.
func (c *call) mayCreate(topic string) error {
	if c.cluster(kmsg.ACLOperationCreate) == nil {
		return nil
	}
	return c.topic(kmsg.ACLOperationCreate, topic)
}

// mayWriteSomewhere is for producers without a transactional id, who are asked
// before they name a topic.
func (c *call) mayWriteSomewhere() error {
	a := c.conn.server.auth
	if a == nil || c.conn.who.trusted || a.allowsAny(c.conn.who, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic) {
		return nil
	}
	return c.cluster(kmsg.ACLOperationIdempotentWrite)
}

// operations are those that a kind of resource has.
var operations = map[kmsg.ACLResourceType][]kmsg.ACLOperation{
	kmsg.ACLResourceTypeTopic: {
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDescribe, kmsg.ACLOperationDelete,
		kmsg.ACLOperationAlter, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeGroup: {
		kmsg.ACLOperationRead, kmsg.ACLOperationDescribe, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	},
	kmsg.ACLResourceTypeCluster: {
		kmsg.ACLOperationCreate, kmsg.ACLOperationClusterAction, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
		kmsg.ACLOperationIdempotentWrite, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe,
	},
	kmsg.ACLResourceTypeTransactionalId: {kmsg.ACLOperationDescribe, kmsg.ACLOperationWrite},
}

// authorized returns the operations that the client may do to a resource, one bit
// each.
func (c *call) authorized(kind kmsg.ACLResourceType, name string) int32 {
	bits := int32(0)
	for _, op := range operations[kind] {
		if c.may(op, kind, name) {
			bits |= 1 << op
		}
	}
	return bits
}
