package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdg-go/scram"
)

// errCredentials is why somebody may not log in. Nobody hears more than that.
var errCredentials = errors.New("user or password is wrong")

// exchange is a login under way: the client's tokens are answered one after the
// other.
type exchange interface {
	// step answers a token; done says that the client has proved who it is.
	step(ctx context.Context, token []byte) (answer []byte, done bool, err error)
	// user is the name that the client has logged in with.
	user() string
	// until is when that ends by itself; zero where it does not.
	until() time.Time
}

// newExchange begins a login by one of the mechanisms that a listener takes.
func (s *Server) newExchange(mechanism string, access *Access) (exchange, error) {
	if !slices.Contains(access.Mechanisms, mechanism) {
		return nil, fmt.Errorf("mechanism %q is not offered", mechanism)
	}
	switch mechanism {
	case MechanismPlain:
		return &plainExchange{server: s}, nil
	case MechanismOAuthBearer:
		return &bearerExchange{tokens: access.Tokens}, nil
	}
	h, ok := findScram(func(h scramHash) bool { return h.name == mechanism })
	if !ok {
		return nil, fmt.Errorf("mechanism %q is not known", mechanism)
	}
	server, err := h.hash.NewServer(func(user string) (scram.StoredCredentials, error) {
		c := s.credential(user, h)
		return scram.StoredCredentials{
			KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations},
			StoredKey:  c.StoredKey, ServerKey: c.ServerKey,
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return &scramExchange{conversation: server.NewConversation()}, nil
}

// scramExchange is a login by SCRAM: the password does not cross the network.
type scramExchange struct{ conversation *scram.ServerConversation }

func (e *scramExchange) step(_ context.Context, token []byte) ([]byte, bool, error) {
	answer, err := e.conversation.Step(string(token))
	if err != nil {
		return nil, false, errCredentials
	}
	if authz := e.conversation.AuthzID(); authz != "" && authz != e.conversation.Username() {
		return nil, false, errCredentials // nobody logs in for somebody else
	}
	return []byte(answer), e.conversation.Done() && e.conversation.Valid(), nil
}

func (e *scramExchange) user() string { return e.conversation.Username() }

func (e *scramExchange) until() time.Time { return time.Time{} }

// plainExchange is a login by a password that the client sends (RFC 4616).
type plainExchange struct {
	server *Server
	name   string
}

func (e *plainExchange) step(ctx context.Context, token []byte) ([]byte, bool, error) {
	parts := bytes.Split(token, []byte{0})
	if len(parts) != 3 || len(parts[1]) == 0 || len(parts[2]) == 0 {
		return nil, false, errCredentials
	}
	authz, user, password := string(parts[0]), string(parts[1]), string(parts[2])
	// To check a password takes a millisecond of a processor: strangers get one.
	if err := e.server.checking.Acquire(ctx, 1); err != nil {
		return nil, false, err
	}
	defer e.server.checking.Release(1)
	h := scramHashes[len(scramHashes)-1]
	for _, other := range scramHashes { // a user may have only one of them
		if _, ok := e.server.node.Meta().Credential(user, other.name); ok {
			h = other
		}
	}
	if !CheckPassword(user, password, e.server.credential(user, h)) || authz != "" && authz != user {
		return nil, false, errCredentials
	}
	e.name = user
	return nil, true, nil
}

func (e *plainExchange) user() string { return e.name }

func (e *plainExchange) until() time.Time { return time.Time{} }
