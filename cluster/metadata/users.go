package metadata

import (
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

// PutCredential sets what a user logs in with by one mechanism.
type PutCredential struct {
	User       string     `json:"user"`
	Credential Credential `json:"credential"`
}

// DeleteCredential takes that away again, and the user with the last one.
type DeleteCredential struct {
	User      string `json:"user"`
	Mechanism string `json:"mechanism"`
}

func (m *State) putCredential(c *PutCredential) Result {
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
	return Result{}
}

// deleteCredential drops the user with the last credential.
func (m *State) deleteCredential(c *DeleteCredential) Result {
	old, ok := m.users[c.User]
	if !ok {
		return Result{Err: ErrUnknownUser}
	}
	i, ok := old.find(c.Mechanism)
	if !ok {
		return Result{Err: ErrUnknownUser}
	}
	u := old.clone()
	u.Credentials = slices.Delete(u.Credentials, i, i+1)
	m.users[u.Name] = u
	if len(u.Credentials) == 0 {
		delete(m.users, u.Name)
	}
	return Result{}
}

// Credential returns a user's credential of one mechanism.
func (m *State) Credential(user, mechanism string) (Credential, bool) {
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
func (m *State) Users() []*User {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.sortedUsers()
}

func (m *State) sortedUsers() []*User {
	return slices.SortedFunc(maps.Values(m.users), func(a, b *User) int { return strings.Compare(a.Name, b.Name) })
}
