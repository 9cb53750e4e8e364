package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/cluster/observer"
)

// observerCollector exports how far an observer's copies are; nothing on other servers.
type observerCollector struct {
	observer *observer.Observer // nil: there is none
}

func observerDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_observer_"+name, help, labels, nil)
}

// Describe sends nothing: an unchecked collector.
func (c observerCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c observerCollector) Collect(ch chan<- prometheus.Metric) {
	if c.observer == nil {
		return
	}
	s := c.observer.Status()
	send(ch, nil, metric{observerDesc("caught_up", "1 once everything is copied that there was at the start, else 0."), gauge, oneIf(s.CaughtUp)})
	for _, u := range s.Upstreams {
		send(ch, []string{u.Address},
			metric{observerDesc("upstream_connected", "1 while the upstream is connected, else 0.", "upstream"), gauge, oneIf(u.Connected)},
			metric{observerDesc("upstream_journals", "Journals that are copied from the upstream now.", "upstream"), gauge, float64(u.Journals)},
		)
	}
	for _, m := range s.Streams {
		send(ch, []string{m.Stream},
			metric{observerDesc("lag_records", "Records of the stream that upstreams know of and that are not copied yet.", "stream"), gauge, float64(m.LagRecords)},
			metric{observerDesc("lag_bytes", "Bytes of the stream that upstreams know of and that are not copied yet.", "stream"), gauge, float64(m.LagBytes)},
			metric{observerDesc("lag_seconds", "For how long the copy of the stream has not had everything, what its upstream is behind included.", "stream"), gauge, m.Lag.Seconds()},
			metric{observerDesc("stopped_journals", "Journals of the stream that are copied no further until someone acts.", "stream"), gauge, float64(len(m.Stopped))},
		)
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
