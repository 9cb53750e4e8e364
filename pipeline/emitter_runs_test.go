package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rows are n records of a table, of about a kilobyte each.
func rows(table string, n int) []Record {
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{Table: table, Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("x", 1000))}
	}
	return all
}

// batchesOf hands records to runs in emits of the given size, and returns what stood
// between the ends: tables and how many of their records.
func batchesOf(r *runs, parts *partitioner, emit int, all []Record) (batches []string) {
	var batch []string
	var counts []int
	end := func() {
		text := ""
		for i := range batch {
			text += fmt.Sprintf("%s%d ", batch[i], counts[i])
		}
		if text != "" {
			batches = append(batches, strings.TrimSpace(text))
		}
		batch, counts = nil, nil
	}
	for len(all) > 0 {
		some := all[:min(emit, len(all))]
		all = all[len(some):]
		for len(some) > 0 {
			n, _, apart := r.next(parts, some, true)
			if apart {
				end()
			}
			for _, k := range some[:n] {
				if i := len(batch) - 1; i < 0 || batch[i] != k.Table {
					batch, counts = append(batch, k.Table), append(counts, 0)
				}
				counts[len(counts)-1]++
			}
			some = some[n:]
		}
	}
	end()
	return batches
}

func TestBatchesEndWhereALongRunOfOneTableBeginsOrEnds(t *testing.T) {
	t.Parallel()
	join := func(parts ...[]Record) (all []Record) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	long := 100
	for name, c := range map[string]struct {
		records []Record
		want    []string
	}{
		"bulk loads":        {join(rows("a", long), rows("b", long), rows("a", long)), []string{"a100", "b100", "a100"}},
		"small changes":     {join(rows("a", 2), rows("b", 1), rows("a", 3), rows("c", 2)), []string{"a2 b1 a3 c2"}},
		"between bulk":      {join(rows("a", long), rows("b", 2), rows("c", 2), rows("b", 1), rows("a", 3)), []string{"a100", "b2 c2 b1 a3"}},
		"bulk after others": {join(rows("b", 2), rows("a", long), rows("c", 1)), []string{"b2 a15", "a85", "c1"}},
		"one table":         {rows("a", 3*long), []string{"a300"}},
		"no table":          {rows("", 3*long), []string{"300"}},
	} {
		for _, emit := range []int{1, 7, 1000} {
			if diff := cmp.Diff(c.want, batchesOf(&runs{}, newPartitioner("none", 1), emit, c.records)); diff != "" {
				t.Errorf("%s, %d records an Emit (-want +got):\n%s", name, emit, diff)
			}
		}
	}
}

// What lies in different partitions does not end each other's batches.
func TestTablesInPartitionsOfTheirOwnShareNoBatches(t *testing.T) {
	t.Parallel()
	parts := newPartitioner("table", 64)
	tables := []string{"a"}
	taken := map[int32]bool{parts.choose(&Record{Table: "a"}): true}
	for i := 0; len(tables) < 5; i++ {
		name := fmt.Sprint("t", i)
		if p := parts.choose(&Record{Table: name}); !taken[p] {
			taken[p], tables = true, append(tables, name)
		}
	}
	var all []Record
	for range 20 {
		for _, table := range tables {
			all = append(all, rows(table, 30)...)
		}
	}
	var r runs
	for len(all) > 0 {
		n, _, apart := r.next(parts, all, true)
		if apart {
			t.Fatalf("batches end %d records before the end", len(all))
		}
		all = all[n:]
	}
}

// To keep tables apart must not cost more than a part of the time, however slow the
// journal answers.
func TestWaitingForBatchesToEndIsBounded(t *testing.T) {
	t.Parallel()
	var r runs
	if !r.affordable(time.Now()) {
		t.Error("the first end is not affordable")
	}
	asked := false
	err := r.end(t.Context(), func(context.Context) error {
		asked = true
		return nil
	})
	if err != nil || !asked {
		t.Fatalf("batches were not flushed: %v", err)
	}
	r.waited = time.Second
	if r.affordable(r.ended.Add(3*time.Second-1)) || !r.affordable(r.ended.Add(3*time.Second)) {
		t.Error("after a second of waiting it must be three without")
	}
	a, b := rows("a", 100), rows("b", 100)
	parts := newPartitioner("none", 1)
	r.next(parts, a, false)
	if n, _, apart := r.next(parts, b, false); n != 100 || apart {
		t.Errorf("where it may not, batches end after %d records (%v)", n, apart)
	}
	if n, _, apart := r.next(parts, a, true); n != 100 || !apart {
		t.Errorf("what was put off is not made up for: %d records, %v", n, apart)
	}
}
