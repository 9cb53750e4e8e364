package pipeline_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// A source does not go on behind records of its that the journal has lost, though others have appended more since: the
// leader epoch beside its checkpoint tells. Where only the leader is another one it goes on.
func TestASourceDoesNotGoOnInAnotherHistory(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const group = "daybook.source.p.src"
	var emitted atomic.Int64
	run := func(total int) error {
		t.Helper()
		f := sourceFile(script{run: counting(total, &emitted)})
		return worker(t, f, open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	}
	if err := run(3); err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(rawClient(t, c))
	committed, err := admin.FetchOffsetsForTopics(t.Context(), group, "numbers")
	if err != nil {
		t.Fatal(err)
	}
	had, ok := committed.Lookup("numbers", 0)
	if !ok || had.At != 3 || had.LeaderEpoch < 0 {
		t.Fatalf("the source's cursor is %+v, want one at 3 with a leader epoch", had)
	}
	if err := c.MoveTopicPartition("numbers", 0, 0); err != nil { // another leader: another epoch
		t.Fatal(err)
	}
	others := make([]pipeline.Record, 7)
	for i := range others {
		others[i].Value = fmt.Append(nil, "other ", i)
	}
	fill(t, c, "numbers", 1, others...)
	commit := func(metadata string) {
		t.Helper()
		o := kadm.Offsets{}
		o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: had.At, LeaderEpoch: had.LeaderEpoch, Metadata: metadata})
		if err := admin.CommitAllOffsets(t.Context(), group, o); err != nil {
			t.Fatal(err)
		}
	}
	commit(appendedMore(t, had.Metadata, 3, 5))
	var stop *pipeline.StopError
	if err := run(6); !errors.As(err, &stop) || stop.Code != "journal-shorter" || !strings.Contains(stop.Fix, group) {
		t.Errorf("a source that had appended 5 records under the first leader, of which 3 are left, got %v", err)
	}
	commit(had.Metadata)
	if err := run(6); err != nil {
		t.Errorf("a source of which everything is left got %v", err)
	}
}

// appendedMore is a source's checkpoint that says it had appended up to another end than it did.
func appendedMore(t *testing.T, checkpoint string, end, says int) string {
	t.Helper()
	state, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(checkpoint, "p:"))
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(state), fmt.Sprintf(`"ends":{"0":%d}`, end), fmt.Sprintf(`"ends":{"0":%d}`, says), 1)
	if more == string(state) {
		t.Fatalf("the checkpoint is %s", state)
	}
	return "p:" + base64.RawStdEncoding.EncodeToString([]byte(more))
}
