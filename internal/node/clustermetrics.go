package node

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/cluster"
)

// clusterCollector exports what a node knows of its cluster.
type clusterCollector struct {
	figures func() cluster.Figures
}

func clusterDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_cluster_"+name, help, labels, nil)
}

// Describe sends nothing: an unchecked collector.
func (c clusterCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c clusterCollector) Collect(ch chan<- prometheus.Metric) {
	f := c.figures()
	coordinates := 0.0
	if f.Coordinates {
		coordinates = 1
	}
	send(ch, nil,
		metric{clusterDesc("nodes", "Nodes of the cluster."), gauge, float64(f.Nodes)},
		metric{clusterDesc("nodes_down", "Nodes that this one has not heard of lately."), gauge, float64(f.NodesDown)},
		metric{clusterDesc("controller", "1 on the node that leads the metadata, else 0: the sum over all nodes is 1."), gauge, coordinates},
		metric{clusterDesc("copies", "Copies of journals on this node."), gauge, float64(f.Copies)},
		metric{clusterDesc("journals_led", "Journals that this node leads."), gauge, float64(f.Led)},
		metric{clusterDesc("under_replicated_journals", "Journals that this node leads and that have fewer copies in sync than they should: the sum over all nodes counts each once."), gauge, float64(f.UnderReplicated)},
		metric{clusterDesc("leaderless_journals", "Journals of the cluster of which this node knows no leader that is up: the same on all nodes."), gauge, float64(f.Leaderless)},
	)
	for node, lag := range f.Lag {
		send(ch, []string{fmt.Sprint(node)},
			metric{clusterDesc("lag_bytes", "Bytes of journals led here that the copies on a node lack, all together.", "node"), gauge, float64(lag.Bytes)},
			metric{clusterDesc("lag_entries", "Entries of journals led here that the copies on a node lack, all together.", "node"), gauge, float64(lag.Entries)},
			metric{clusterDesc("most_lag_bytes", "Bytes that the copy on a node lacks that is furthest behind.", "node"), gauge, float64(lag.MostBytes)},
			metric{clusterDesc("most_lag_entries", "Entries that the copy on a node lacks that is furthest behind.", "node"), gauge, float64(lag.MostEntries)},
		)
	}
}
