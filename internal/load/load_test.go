package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/internal/load"
)

// broker starts one that speaks the real protocol and whose answers can be tampered with.
func broker(t *testing.T, o ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SleepOutOfOrder()}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestEveryRecordIsCountedAndVerified(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]load.Options{
		"application":           {Records: 3000, Partitions: 3},
		"application, both":     {Records: 3000, Partitions: 3, Mode: load.Both},
		"application at a rate": {Records: 500, Rate: 2000, Mode: load.Both, Linger: -1},
		"raw":                   {Raw: true, Records: 3000, BatchRecords: 10, Partitions: 7, Clients: 3},
		"raw, both":             {Raw: true, Records: 3000, BatchRecords: 10, Mode: load.Both},
		"raw, one in flight":    {Raw: true, Records: 300, BatchRecords: 1, Clients: 5, InFlight: 1},
		"raw at a rate":         {Raw: true, Records: 1000, BatchRecords: 5, Rate: 5000, Clients: 3},
		"raw, more clients":     {Raw: true, Records: 1000, BatchRecords: 5, Partitions: 2, Clients: 6},
		"raw, zstd":             {Raw: true, Records: 2000, BatchRecords: 100, Compression: "zstd", Corpus: "constant"},
		"raw, snappy":           {Raw: true, Records: 2000, BatchRecords: 100, Compression: "snappy"},
		"raw, gzip":             {Raw: true, Records: 2000, BatchRecords: 100, Compression: "gzip"},
		"raw, none":             {Raw: true, Records: 2000, BatchRecords: 100, Compression: "none", Corpus: "random"},
		"without answers":       {Raw: true, Records: 2000, BatchRecords: 100, Acks: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Brokers, o.Verify, o.Size = broker(t).ListenAddrs(), true, 200
			r, err := load.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if n := r.Produced.Records; n < o.Records || n > o.Records+o.Records/2 || !r.Verified {
				t.Errorf("%d records produced, verified %v; want about %d", n, r.Verified, o.Records)
			}
			if r.Consumed != nil && r.Consumed.Records != r.Produced.Records {
				t.Errorf("%d records produced, %d consumed", r.Produced.Records, r.Consumed.Records)
			}
			for _, raw := range []bool{false, true} {
				read, err := load.Run(t.Context(), load.Options{Brokers: o.Brokers, Mode: load.Consume, Raw: raw})
				if err != nil {
					t.Fatal(err)
				}
				if read.Consumed.Records != r.Produced.Records {
					t.Errorf("read again (raw %v): %d records, want %d", raw, read.Consumed.Records, r.Produced.Records)
				}
			}
		})
	}
}

// An open loop that waited for a stalled server and began its clock then would show one slow answer.
func TestLatencyOfAnOpenLoopCountsFromWhenARecordWasDue(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]load.Options{
		"raw":         {Raw: true, BatchRecords: 1, InFlight: 1, Clients: 1},
		"application": {Clients: 1, Linger: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			const stall = 500 * time.Millisecond
			var n atomic.Int64
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if n.Add(1) == 5 {
					c.SleepControl(func() { <-time.After(stall) })
				}
				return nil, nil, false
			})
			o.Brokers, o.Records, o.Rate, o.Size = c.ListenAddrs(), 500, 500, 100
			r, err := load.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			// A quarter of the records were due while the server stood still: their mean wait is half the stall.
			if l := r.Produced.Latency; l.P99 < 400 || l.Max < 490 {
				t.Errorf("p99 is %.0f ms, the most %.0f ms, with a server that stood still for %v", l.P99, l.Max, stall)
			}
		})
	}
}

func TestAcknowledgedRecordsThatAreNotThereFailTheRun(t *testing.T) {
	t.Parallel()
	for _, raw := range []bool{false, true} {
		c := broker(t)
		var n atomic.Int64
		c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if n.Add(1) != 2 {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.ProduceResponse) // stored, it says
			for _, t := range req.(*kmsg.ProduceRequest).Topics {
				topic := kmsg.NewProduceResponseTopic()
				topic.Topic, topic.TopicID = t.Topic, t.TopicID
				for _, p := range t.Partitions {
					part := kmsg.NewProduceResponseTopicPartition()
					part.Partition = p.Partition
					topic.Partitions = append(topic.Partitions, part)
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		})
		o := load.Options{Brokers: c.ListenAddrs(), Raw: raw, Records: 2000, Size: 200, BatchBytes: 5000, Patience: 300 * time.Millisecond}
		if _, err := load.Run(t.Context(), o); !errors.Is(err, load.ErrWrong) {
			t.Errorf("raw %v: the run ended with %v, want ErrWrong", raw, err)
		}
	}
}

func TestRecordsOfOthersFailTheRun(t *testing.T) {
	t.Parallel()
	c := broker(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var once atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if once.CompareAndSwap(false, true) {
			c.SleepControl(func() {
				if err := client.ProduceSync(context.Background(), &kgo.Record{Topic: "bench", Value: []byte("alien")}).FirstErr(); err != nil {
					t.Error(err)
				}
			})
		}
		return nil, nil, false
	})
	o := load.Options{Brokers: c.ListenAddrs(), Records: 1000, Size: 200, Raw: true, BatchRecords: 10}
	if _, err := load.Run(t.Context(), o); !errors.Is(err, load.ErrWrong) {
		t.Errorf("the run ended with %v, want ErrWrong", err)
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	t.Parallel()
	some := []string{"127.0.0.1:1"}
	for name, o := range map[string]load.Options{
		"no brokers":       {},
		"a mode":           {Brokers: some, Mode: "produced"},
		"a corpus":         {Brokers: some, Corpus: "xml"},
		"a codec":          {Brokers: some, Compression: "lzma"},
		"acks":             {Brokers: some, Acks: "2"},
		"a small record":   {Brokers: some, Size: 3},
		"a large batch":    {Brokers: some, BatchBytes: 1 << 30},
		"negative":         {Brokers: some, Rate: -1},
		"batches of kgo":   {Brokers: some, BatchRecords: 5},
		"verifying others": {Brokers: some, Mode: load.Consume, Verify: true},
		"reading at rates": {Brokers: some, Mode: load.Consume, Rate: 5},
	} {
		if _, err := load.Run(t.Context(), o); !errors.Is(err, load.ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
	if _, err := load.Run(t.Context(), load.Options{Brokers: some, Patience: time.Second}); !errors.Is(err, load.ErrUnreachable) {
		t.Errorf("nobody there: got %v, want ErrUnreachable", err)
	}
}
