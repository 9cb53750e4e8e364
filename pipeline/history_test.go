package pipeline_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-data/daybook/pipeline"
)

// A journal that lost records and has grown past a sink's cursor again is not read on from there, as nothing were the
// matter: the leader epoch beside the cursor tells.
func TestASinkDoesNotGoOnInAnotherHistory(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var first, second []pipeline.Record
	for i := range 3 {
		first = append(first, pipeline.Record{Value: fmt.Append(nil, "first", i)})
	}
	for i := range 7 {
		second = append(second, pipeline.Record{Value: fmt.Append(nil, "second", i)})
	}
	fill(t, c, "numbers", 1, first...)
	var d destination
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d})))
	admin := kadm.NewClient(rawClient(t, c))
	committed, err := admin.FetchOffsetsForTopics(t.Context(), "daybook.sink.p.a", "numbers")
	if err != nil {
		t.Fatal(err)
	}
	had, ok := committed.Lookup("numbers", 0)
	if !ok || had.LeaderEpoch < 0 {
		t.Fatalf("the sink's cursor is %+v, want one with a leader epoch", had)
	}
	if err := c.MoveTopicPartition("numbers", 0, 0); err != nil { // another leader: another epoch
		t.Fatal(err)
	}
	fill(t, c, "numbers", 1, second...)
	run := func(at int64) error {
		t.Helper()
		o := kadm.Offsets{}
		o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: at, LeaderEpoch: had.LeaderEpoch, Metadata: had.Metadata})
		if err := admin.CommitAllOffsets(t.Context(), "daybook.sink.p.a", o); err != nil {
			t.Fatal(err)
		}
		return worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	}
	var stop *pipeline.StopError
	if err := run(5); !errors.As(err, &stop) || stop.Code != "journal-shorter" || stop.Fix == "" {
		t.Errorf("a sink that had read 5 records of the first leader, of which 3 are left, got %v", err)
	}
	if err := run(3); err != nil {
		t.Errorf("a sink that had read what is left got %v", err)
	}
}
