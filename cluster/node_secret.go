package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
)

// putSecret gives the cluster its secret; the first one stays.
type putSecret struct {
	Secret string `json:"secret"`
}

func (m *Meta) putSecret(c *putSecret) result {
	if m.secret == "" {
		m.secret = c.Secret
	}
	return result{value: m.secret}
}

func (m *Meta) decoySecret() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.secret
}

// DecoySecret is random, the same on all nodes of the cluster for good, and shown to nobody: what a node makes of it for
// users that do not exist looks the same everywhere. It is made when it is first asked for.
func (n *Node) DecoySecret(ctx context.Context) ([]byte, error) {
	secret := n.meta.decoySecret()
	if secret == "" {
		var b [32]byte
		_, _ = rand.Read(b[:]) // documented never to fail
		v, err := n.proposer.propose(ctx, command{PutSecret: &putSecret{hex.EncodeToString(b[:])}})
		if err != nil {
			return nil, err
		}
		secret = v.(string)
	}
	return hex.DecodeString(secret)
}
