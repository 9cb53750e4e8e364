package cluster

import (
	"context"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// PutCredential gives a user a credential, in place of the one of the same
// mechanism. A user that does not exist is made.
func (n *Node) PutCredential(ctx context.Context, user string, c metadata.Credential) error {
	_, err := n.proposer.propose(ctx, metadata.Command{PutCredential: &metadata.PutCredential{User: user, Credential: c}})
	return err
}

// DeleteCredential takes a credential from a user. It returns ErrUnknownUser if
// there is none. Connections that have logged in with it stay.
func (n *Node) DeleteCredential(ctx context.Context, user, mechanism string) error {
	_, err := n.proposer.propose(ctx, metadata.Command{DeleteCredential: &metadata.DeleteCredential{User: user, Mechanism: mechanism}})
	return err
}

// CreateACLs adds ACLs; those that are there already stay as they are.
func (n *Node) CreateACLs(ctx context.Context, acls []metadata.ACL) error {
	_, err := n.proposer.propose(ctx, metadata.Command{CreateACLs: &metadata.CreateACLs{ACLs: acls}})
	return err
}

// DeleteACLs removes ACLs, as far as they are there.
func (n *Node) DeleteACLs(ctx context.Context, acls []metadata.ACL) error {
	_, err := n.proposer.propose(ctx, metadata.Command{DeleteACLs: &metadata.DeleteACLs{ACLs: acls}})
	return err
}
