package pipeline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-data/daybook/pipeline"
)

// Records that expire while a sink reads are as lost to it as those that expired before it began: it stops, and does not
// go on behind them.
func TestASinkStopsWhenRecordsExpireInFrontOfIt(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 40 // of a megabyte that does not compress: more than a client fetches ahead
	noise := rand.NewChaCha8([32]byte{})
	records := make([]pipeline.Record, total)
	for i := range records {
		records[i].Value = make([]byte, 900<<10)
		_, _ = noise.Read(records[i].Value)
	}
	fill(t, c, "numbers", 1, records...)
	admin := kadm.NewClient(rawClient(t, c))
	var d destination
	entry := sinkEntry("a", memory{to: &d})
	entry.Config = meanwhile{memory: memory{to: &d}, first: func() error { return deleteBefore(t, admin, total) }}
	err := worker(t, sinkFile(entry), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "journal-gap" || !strings.HasPrefix(stop.Where, "numbers/0@") || stop.Fix == "" {
		t.Errorf("got %v, want journal-gap", err)
	}
	rows := d.all()
	if len(rows) == 0 || len(rows) == total {
		t.Errorf("%d of %d records were delivered, want some", len(rows), total)
	}
	for i := range rows {
		if rows[i].Offset != int64(i) {
			t.Fatalf("record %d was delivered at place %d", rows[i].Offset, i)
		}
	}
}

// meanwhile is a memory sink during whose first write something happens.
type meanwhile struct {
	memory
	first func() error
}

func (m meanwhile) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	s, err := m.memory.OpenSink(env)
	return &meanwhileSink{Sink: s, first: sync.OnceValue(m.first)}, err
}

type meanwhileSink struct {
	pipeline.Sink
	first func() error
}

func (s *meanwhileSink) Write(ctx context.Context, batch []pipeline.Delivery) error {
	return errors.Join(s.first(), s.Sink.Write(ctx, batch))
}

func deleteBefore(t *testing.T, admin *kadm.Client, offset int64) error {
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: offset, LeaderEpoch: -1})
	deleted, err := admin.DeleteRecords(t.Context(), o)
	return errors.Join(err, deleted.Error())
}

// A source whose checkpoint is at 3 goes on where the records up to 8 have expired: it has lost nothing. One whose
// checkpoint is behind the stream's end does not: what it had appended is gone.
func TestASourceHoldsItsCheckpointAgainstTheStream(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const group = "daybook.source.p.src"
	var emitted atomic.Int64
	run := func(total int) error {
		t.Helper()
		return worker(t, sourceFile(script{run: counting(total, &emitted)}), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	}
	if err := run(3); err != nil {
		t.Fatal(err)
	}
	fill(t, c, "numbers", 1, make([]pipeline.Record, 7)...)
	admin := kadm.NewClient(rawClient(t, c))
	if err := deleteBefore(t, admin, 8); err != nil {
		t.Fatal(err)
	}
	if err := run(6); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, k := range contentsFrom(t, c, "numbers")[2:] { // behind those that others appended
		numbers = append(numbers, headerOf(k, pipeline.HeaderPosition))
	}
	if got := strings.Join(numbers, " "); got != "3 4 5" {
		t.Errorf("it appended the numbers %q, want 3 4 5", got)
	}

	committed, err := admin.FetchOffsetsForTopics(t.Context(), group, "numbers")
	if err != nil {
		t.Fatal(err)
	}
	had, _ := committed.Lookup("numbers", 0)
	had.Metadata = appendedMore(t, had.Metadata, 13, 14)
	o := kadm.Offsets{}
	o.Add(had.Offset)
	if err := admin.CommitAllOffsets(t.Context(), group, o); err != nil {
		t.Fatal(err)
	}
	var stop *pipeline.StopError
	if err := run(9); !errors.As(err, &stop) || stop.Code != "journal-shorter" || !strings.Contains(stop.Where, "ends at 13, the source's checkpoint at 14") {
		t.Errorf("a source that had appended a record more than the journal has got %v", err)
	}
}
