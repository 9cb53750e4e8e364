package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/internal/retry"
)

// takeOut takes steps until a node is out of its cluster.
func takeOut(ctx context.Context, ask *cluster.Node, r moves.Removal) error {
	for {
		p, err := ask.Moves().Remove(ctx, r)
		if err != nil || p.Done {
			return err
		}
		if !retry.Pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("node %d still has replicas: %w", r.Node, ctx.Err())
		}
	}
}
