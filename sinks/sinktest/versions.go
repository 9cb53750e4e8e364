package sinktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/pipeline"
)

// testLateUpdate sends an update and a delete, then the update again, after
// a restart and from a second worker.
func testLateUpdate(t *testing.T, s Suite) {
	d := s.New(t)
	update, gone := put(1, "a", "old"), remove(2, "a")
	r := open(t, d, NewEnv(t))
	r.resume()
	r.write(update, gone)
	r.flush(3)
	want(t, s, d)

	again := open(t, d, NewEnv(t))
	again.resume()
	again.write(update)
	again.flush(2)
	want(t, s, d)

	// The other way round, by two workers: the delete is there before its update.
	r.write(remove(4, "b"))
	r.flush(5)
	again.write(put(3, "b", "old"))
	again.flush(4)
	want(t, s, d)

	// The replay of an old range into the live target runs to the live cursor.
	again.write(change(0, pipeline.OpCreate, Row{}, Row{"a", "first"}), update, gone, put(3, "b", "old"), remove(4, "b"), put(5, "c", "new"))
	again.flush(6)
	want(t, s, d, Row{"c", "new"})
}

// testVersionOrder gives the same changes to two runs in random orders, some of them
// twice: the state must be that of the changes in their own order.
func testVersionOrder(t *testing.T, s Suite) {
	d := s.New(t)
	random := rand.New(rand.NewPCG(7, 11))
	var changes []pipeline.Delivery
	state := map[string]string{}
	for offset := range int64(200) {
		id := fmt.Sprintf("row-%d", random.IntN(12))
		if random.IntN(3) == 0 {
			changes = append(changes, remove(offset, id))
			delete(state, id)
			continue
		}
		v := fmt.Sprintf("v%d", offset)
		changes = append(changes, put(offset, id, v))
		state[id] = v
	}
	workers := []*run{open(t, d, NewEnv(t)), open(t, d, NewEnv(t))}
	for range 3 {
		random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
		for i := 0; i < len(changes); i += 20 {
			w := workers[random.IntN(2)]
			w.write(changes[i : i+20]...)
			w.flush(200)
		}
	}
	var rows []Row
	for id, v := range state {
		rows = append(rows, Row{id, v})
	}
	want(t, s, d, rows...)
}

func testMove(t *testing.T, s Suite) {
	d := s.New(t)
	r := open(t, d, NewEnv(t))
	r.resume()
	move := change(1, pipeline.OpUpdate, Row{"old place", "x"}, Row{"new place", "x"})
	r.write(change(0, pipeline.OpCreate, Row{}, Row{"old place", "x"}), move)
	r.flush(2)
	want(t, s, d, Row{"new place", "x"})
	// Another row takes the place that became free; the move comes again.
	r.write(change(2, pipeline.OpCreate, Row{}, Row{"old place", "y"}), move)
	r.flush(3)
	want(t, s, d, Row{"new place", "x"}, Row{"old place", "y"})
}

func testRefusal(t *testing.T, s Suite) {
	d := s.New(t)
	odd := Row{"refused", "not a number"}
	refused := []int64{1}
	rows := []Row{{"a", "1"}, {"b", "2"}, {"c", "4"}}
	if refuser, ok := d.(Refuser); ok {
		refuser.Refuse(t, odd)
		refused = append(refused, 3)
	} else {
		rows = append(rows, odd)
	}
	r := open(t, d, NewEnv(t))
	r.resume()
	nameless := put(1, "x", "x")
	nameless.After = pipeline.NewRow([]byte(`{"v":"a row without id"}`))
	batch := []pipeline.Delivery{put(0, "a", "1"), nameless, put(2, "b", "2"), put(3, odd.ID, odd.V), put(4, "c", "4")}
	r.write(batch...)
	mend := d.Break(t)
	wantTransient(t, r.sink.Flush(t.Context(), UpTo(5)))
	mend()
	err := r.sink.Flush(t.Context(), UpTo(5))
	var rejected *pipeline.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatalf("Flush returned %v, want a RejectedError", err)
	}
	seen := map[int64]bool{}
	for _, one := range rejected.Rejected {
		if one.Reason == "" {
			t.Errorf("no reason is given for offset %d", one.Delivery.Offset)
		}
		seen[one.Delivery.Offset] = true
	}
	wanted := map[int64]bool{}
	for _, offset := range refused {
		wanted[offset] = true
	}
	if diff := cmp.Diff(wanted, seen); diff != "" || len(rejected.Rejected) != len(refused) {
		t.Errorf("%d rejected (-want +got):\n%s", len(rejected.Rejected), diff)
	}
	want(t, s, d, rows...)
	// A refusal is told once, and holds nothing up.
	r.write(put(5, "d", "5"))
	r.flush(6)
	want(t, s, d, append(rows, Row{"d", "5"})...)
}

func testTruncate(t *testing.T, s Suite) {
	d := s.New(t)
	r := open(t, d, NewEnv(t))
	r.resume()
	other := put(1, "other table", "stays")
	other.Table = "shop.others"
	truncate := change(3, pipeline.OpTruncate, Row{}, Row{})
	truncate.Key = nil
	batch := []pipeline.Delivery{put(0, "a", "1"), other, put(2, "b", "2"), truncate, put(4, "c", "3")}
	r.write(batch...)
	r.flush(5)
	want(t, s, d, Row{"c", "3"}, Row{"other table", "stays"})
	// All of it again, then rows from before the truncate on their own: one that was there
	// and one that comes only now, from a partition that is behind.
	again := open(t, d, NewEnv(t))
	again.write(batch...)
	again.flush(5)
	again.write(put(2, "b", "2"), put(2, "not seen before", "2"))
	again.flush(5)
	want(t, s, d, Row{"c", "3"}, Row{"other table", "stays"})
}
