package pipeline

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// outbox is what a session has not yet made durable.
type outbox struct {
	batch   []Delivery // not yet with the sink
	records int        // in batch and with the sink
	bytes   int64
	first   time.Time // when the first of them came
	taken   int       // offsets read since the last flush, also those that are not delivered
	// aside are dead letters and late records, to be appended before the flush.
	aside      []*kgo.Record
	asideBytes int64
}

// maxAside is how many bytes of records wait to be kept aside.
const maxAside = 4 << 20

// idleWait is how long a poll waits where nothing is due.
const idleWait = 250 * time.Millisecond

func (o *outbox) add(d Delivery) {
	if o.records == 0 {
		o.first = time.Now()
	}
	o.batch = append(o.batch, d)
	o.records++
	o.bytes += d.size()
}

func (o *outbox) keepAside(k *kgo.Record) {
	o.aside = append(o.aside, k)
	o.asideBytes += int64(len(k.Key) + len(k.Value) + 300)
}

// full reports whether a bound of size is reached.
func (o *outbox) full(c BatchConfig) bool {
	return o.records >= c.Records || o.bytes >= c.Bytes || o.asideBytes >= maxAside
}

// due reports whether any bound is reached.
func (o *outbox) due(c BatchConfig) bool {
	return o.full(c) || o.records > 0 && time.Since(o.first) >= c.Time
}

// wait is how long a poll may wait for more.
func (o *outbox) wait(most time.Duration) time.Duration {
	if o.records == 0 {
		return idleWait
	}
	return max(min(most-time.Since(o.first), idleWait), time.Millisecond)
}

// flushed forgets everything.
func (o *outbox) flushed() {
	clear(o.batch)
	*o = outbox{batch: o.batch[:0]}
}
