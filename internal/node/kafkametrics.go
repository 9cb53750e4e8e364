package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// kafkaCollector exports what a server has done for its Kafka clients.
type kafkaCollector struct {
	stats func() kafka.Stats
}

func kafkaDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_kafka_"+name, help, nil, nil)
}

// Describe sends nothing: an unchecked collector.
func (c kafkaCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c kafkaCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	send(ch, nil,
		metric{kafkaDesc("connections", "Connections of Kafka clients that are open."), gauge, float64(s.Connections)},
		metric{kafkaDesc("requests_total", "Requests of Kafka clients, answered or being answered."), counter, float64(s.Requests)},
		metric{kafkaDesc("in_bytes_total", "Bytes of requests."), counter, float64(s.BytesIn)},
		metric{kafkaDesc("out_bytes_total", "Bytes of answers."), counter, float64(s.BytesOut)},
		metric{kafkaDesc("records_total", "Records in batches that were stored; repeats of a batch count again."), counter, float64(s.RecordsIn)},
		metric{kafkaDesc("batches_total", "Batches that were stored."), counter, float64(s.BatchesTaken)},
		metric{kafkaDesc("batches_refused_total", "Batches that were refused, or not stored for another reason."), counter, float64(s.BatchesRefused)},
		metric{kafkaDesc("logins_refused_total", "Logins (SASL) that were refused."), counter, float64(s.LoginsRefused)},
	)
}
