package moves

import (
	"context"
	"fmt"

	"github.com/daybook-data/daybook/cluster/placement"
)

// Rebalance begins some of the moves that spread replicas and leads over the nodes, and says what is left. A node that
// is down is no reason to move what it has: it has to be brought back or taken out first.
func (m *Mover) Rebalance(ctx context.Context, dry bool) (Progress, error) {
	return m.step(ctx, dry, 0, func(journals []placement.Journal, _ []Move) ([]placement.Change, error) {
		var down []int32
		for _, node := range m.o.Meta.Members() {
			if !m.o.Up(node.ID) {
				down = append(down, node.ID)
			}
		}
		if len(down) > 0 {
			return nil, fmt.Errorf("%w: %v: start them, or take them out, before the load is spread", ErrMembersDown, down)
		}
		return placement.Balance(m.candidates(), journals), nil
	})
}
