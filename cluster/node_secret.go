package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// DecoySecret is random, the same on all nodes of the cluster for good, and shown to nobody: what a node makes of it for
// users that do not exist looks the same everywhere. It is made when it is first asked for.
func (n *Node) DecoySecret(ctx context.Context) ([]byte, error) {
	secret := n.meta.DecoySecret()
	if secret == "" {
		var b [32]byte
		_, _ = rand.Read(b[:]) // documented never to fail
		v, err := n.proposer.propose(ctx, metadata.Command{PutSecret: &metadata.PutSecret{Secret: hex.EncodeToString(b[:])}})
		if err != nil {
			return nil, err
		}
		secret = v.(string)
	}
	return hex.DecodeString(secret)
}
