package transport

import (
	"fmt"
	"strconv"
	"strings"
)

// Superseded begins the reason for which a node is refused whose cluster went on without it: see [Options.Cluster].
const Superseded = "its cluster lost its majority and went on without it"

// generation parts a cluster's name: "id#2" is its second generation, "id" the first, which has no number.
func generation(cluster string) (id string, number uint64) {
	id, text, found := strings.Cut(cluster, "#")
	if !found {
		return cluster, 0
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return cluster, 0
	}
	return id, number
}

// stranger is the objection to a node of another cluster, or of this one in another generation.
func stranger(theirs, ours string) objection {
	id, number := generation(theirs)
	our, now := generation(ours)
	switch {
	case id == our && number < now:
		return objection{reason: fmt.Sprintf("%s: it has what was before generation %d; to join again it needs an empty folder", Superseded, now)}
	case id == our:
		return objection{reason: fmt.Sprintf("this node's cluster lost its majority and went on, as generation %d, without this node", number)}
	}
	return objection{fmt.Sprintf("it belongs to cluster %q, this node to %q: correct its list of nodes or its cluster id", theirs, ours), flagForeign}
}
