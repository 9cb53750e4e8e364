package node

import (
	"github.com/prometheus/client_golang/prometheus"
)

func soundDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_"+name, help, []string{"dir"}, nil)
}

// soundCollector exports what the nodes of this process know of the soundness of the bytes on their disks.
type soundCollector struct {
	stores func() []*store
}

// Describe sends nothing: an unchecked collector.
func (c soundCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c soundCollector) Collect(ch chan<- prometheus.Metric) {
	for _, st := range c.stores() {
		s := st.node.Soundness()
		send(ch, []string{st.dir},
			metric{soundDesc("scrub_rounds_total", "Rounds in which all sealed segments were read and every byte checked."), counter, float64(s.Rounds)},
			metric{soundDesc("scrub_bytes_total", "Bytes of sealed segments that were read and checked."), counter, float64(s.Checked)},
			metric{soundDesc("damage_found_total", "Segments in which damage was found."), counter, float64(s.Damaged)},
			metric{soundDesc("damage_mended_total", "Segments that were mended from another copy."), counter, float64(s.Mended)},
			metric{soundDesc("damaged_segments", "Segments that are damaged now: what is damaged of them is not served."), gauge, float64(s.Left)},
			metric{soundDesc("copies_compared_total", "Ends of sealed segments that were compared with another node's copy."), counter, float64(s.Compared)},
			metric{soundDesc("copies_differed_total", "Times that a copy was found not to be the same as another node's."), counter, float64(s.Differed)},
			metric{soundDesc("diverged_journals", "Copies of journals that serve nobody, as most other copies differ from them."), gauge, float64(s.Diverged)},
		)
	}
}
