package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// Serving says why clients are not served here what they could be, or nil: the metadata, or journals that this node has
// copies of, hear no leader. That is so for all copies on a node that is cut off, and on the others when most nodes are
// gone. An election is not told of, unless it goes on for longer than usual. Of an
// observer it is what [observer.Observer.Ready] says.
func (n *Node) Serving() error {
	if n.observer != nil {
		return n.observer.Ready()
	}
	if n.trans == nil {
		return nil // it leads everything
	}
	var errs []error
	if d := n.metaGroup.Leaderless(); d > 0 {
		errs = append(errs, fmt.Errorf("the metadata has heard no leader for %s: most of the nodes %v must be up, and reach this one", d, n.metaVoters()))
	}
	if why := n.metaGroup.Stuck(); why != "" {
		errs = append(errs, fmt.Errorf("the metadata has no leader: %s", why))
	}
	var silent []string
	n.journals.eachOpen(func(name string, h *journalHandle, g *raftgroup.Group) {
		if g.Leaderless() > 0 {
			silent = append(silent, fmt.Sprintf("%s/%d", name, h.number))
		}
	})
	if len(silent) > 0 {
		const shown = 3
		list := strings.Join(silent[:min(shown, len(silent))], ", ")
		if more := len(silent) - shown; more > 0 {
			list = fmt.Sprintf("%s and %d more", list, more)
		}
		errs = append(errs, fmt.Errorf("journals here that hear no leader: %s", list))
	}
	return errors.Join(errs...)
}
