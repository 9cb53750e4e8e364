package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
)

// ErrUnknownUser: no such user, or none with a credential of that mechanism.
var ErrUnknownUser = errors.New("unknown user")

// Credential is what a user's password is checked with by one SCRAM mechanism (RFC
// 5802). The password itself is kept nowhere.
type Credential struct {
	// Mechanism is the SASL name, such as SCRAM-SHA-512.
	Mechanism  string `json:"mechanism"`
	Iterations int    `json:"iterations"`
	Salt       []byte `json:"salt"`
	StoredKey  []byte `json:"stored_key"`
	ServerKey  []byte `json:"server_key"`
}

// User is somebody who may log in.
type User struct {
	Name string `json:"name"`
	// Credentials are sorted by mechanism, of which each stands once.
	Credentials []Credential `json:"credentials"`
}

// clone returns a copy whose list can be changed; salts and keys never are.
func (u *User) clone() *User { return &User{u.Name, slices.Clone(u.Credentials)} }

func (u *User) find(mechanism string) (int, bool) {
	return slices.BinarySearchFunc(u.Credentials, mechanism, func(c Credential, m string) int {
		return strings.Compare(c.Mechanism, m)
	})
}

type putCredential struct {
	User       string     `json:"user"`
	Credential Credential `json:"credential"`
}

type deleteCredential struct {
	User      string `json:"user"`
	Mechanism string `json:"mechanism"`
}

func (m *Meta) putCredential(c *putCredential) result {
	u := &User{Name: c.User}
	if old, ok := m.users[c.User]; ok {
		u = old.clone()
	}
	if i, ok := u.find(c.Credential.Mechanism); ok {
		u.Credentials[i] = c.Credential
	} else {
		u.Credentials = slices.Insert(u.Credentials, i, c.Credential)
	}
	m.users[u.Name] = u
	return result{}
}

// deleteCredential drops the user with the last credential.
func (m *Meta) deleteCredential(c *deleteCredential) result {
	old, ok := m.users[c.User]
	if !ok {
		return result{err: ErrUnknownUser}
	}
	i, ok := old.find(c.Mechanism)
	if !ok {
		return result{err: ErrUnknownUser}
	}
	u := old.clone()
	u.Credentials = slices.Delete(u.Credentials, i, i+1)
	m.users[u.Name] = u
	if len(u.Credentials) == 0 {
		delete(m.users, u.Name)
	}
	return result{}
}

// Credential returns a user's credential of one mechanism.
func (m *Meta) Credential(user, mechanism string) (Credential, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	u, ok := m.users[user]
	if !ok {
		return Credential{}, false
	}
	i, ok := u.find(mechanism)
	if !ok {
		return Credential{}, false
	}
	return u.Credentials[i], true
}

// Users returns all users, sorted by name. Do not change them.
func (m *Meta) Users() []*User {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.sortedUsers()
}

func (m *Meta) sortedUsers() []*User {
	return slices.SortedFunc(maps.Values(m.users), func(a, b *User) int { return strings.Compare(a.Name, b.Name) })
}

// PutCredential gives a user a credential, in place of the one of the same
// mechanism. A user that does not exist is made.
func (n *Node) PutCredential(ctx context.Context, user string, c Credential) error {
	_, err := n.proposer.propose(ctx, command{PutCredential: &putCredential{user, c}})
	return err
}

// DeleteCredential takes a credential from a user. It returns ErrUnknownUser if
// there is none. Connections that have logged in with it stay.
func (n *Node) DeleteCredential(ctx context.Context, user, mechanism string) error {
	_, err := n.proposer.propose(ctx, command{DeleteCredential: &deleteCredential{user, mechanism}})
	return err
}
