package status

// Counts are what one looks at first. Journals are counted once in each.
type Counts struct {
	Nodes     int `json:"nodes"`
	NodesDown int `json:"nodes_down"`
	Journals  int `json:"journals"`
	// Leaderless have no leader that serves: nothing can be written to or read from them.
	Leaderless int `json:"leaderless"`
	// UnderReplicated have fewer copies that are in sync than they should have.
	UnderReplicated int `json:"under_replicated"`
	// Short are to have more copies than there are nodes.
	Short int `json:"short_of_nodes"`
	// Moving are on their way to other nodes.
	Moving int `json:"moving"`
	// NotPreferred are led by another node than the one that should lead them.
	NotPreferred int `json:"not_preferred"`
	// Problems are copies that take nothing any more, or have no vote, and nodes that say that data does not move.
	Problems int `json:"problems"`
}

// count fills in the counts.
func (s *Cluster) count() {
	c := &s.Counts
	c.Nodes, c.Journals = len(s.Members), len(s.Journals)
	for _, m := range s.Members {
		if !m.Up {
			c.NodesDown++
		}
		if m.Problem != "" {
			c.Problems++
		}
	}
	for _, j := range s.Journals {
		if j.Leader < 0 {
			c.Leaderless++
		} else if j.Leader != j.Preferred {
			c.NotPreferred++
		}
		if j.InSync < j.Wanted {
			c.UnderReplicated++
		}
		if j.Asked > j.Wanted {
			c.Short++
		}
		if j.Moving {
			c.Moving++
		}
		for _, r := range j.Replicas {
			if r.Problem != "" || r.Doubt != "" {
				c.Problems++
			}
		}
	}
}
