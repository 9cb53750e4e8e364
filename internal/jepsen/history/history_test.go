package history_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

func TestHistoriesComeBackFromTheirFile(t *testing.T) {
	t.Parallel()
	r := history.NewRecorder()
	p := history.NewPartition("orders", 3)
	op := r.Begin(history.Op{Session: "a", Kind: history.Send})
	open := r.Begin(history.Op{Session: "b", Kind: history.Poll})
	op.Outcome, op.Sends = history.OK, []history.Sent{{Partition: p, Value: r.Value(), Offset: 7, Outcome: history.OK}}
	r.Done(op)
	ops := r.Ops()
	if ops[0].Complete == history.Never || ops[1].Complete != history.Never || ops[1].Outcome != history.Unknown || open.Index != 1 {
		t.Errorf("one ended, one not: recorded as %+v", ops)
	}
	var file bytes.Buffer
	if err := history.Write(&file, ops); err != nil {
		t.Fatal(err)
	}
	back, err := history.ReadAll(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ops, back); diff != "" {
		t.Errorf("written and read (-written +read):\n%s", diff)
	}
	if stream, number := back[0].Sends[0].Partition.Split(); stream != "orders" || number != 3 {
		t.Errorf("partition 3 of orders is read as %d of %q", number, stream)
	}
}
