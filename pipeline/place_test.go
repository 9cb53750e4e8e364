package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/pipeline"
)

func TestParsePlace(t *testing.T) {
	t.Parallel()
	at := func(number int32) pipeline.Partition {
		return pipeline.Partition{Stream: "shop.changes", Number: number}
	}
	for text, want := range map[string]pipeline.Place{
		"start":                                 {Start: true, Offset: -1},
		"end":                                   {End: true, Offset: -1},
		"2026-09-01T02:00:00+02:00":             {Time: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), Offset: -1},
		"2026-09-01T00:00:00.25Z":               {Time: time.Date(2026, 9, 1, 0, 0, 0, 250_000_000, time.UTC), Offset: -1},
		"120":                                   {Offset: 120},
		"shop.changes/0@120, shop.changes/3@88": {Offset: -1, Offsets: map[pipeline.Partition]int64{at(0): 120, at(3): 88}},
	} {
		got, err := pipeline.ParsePlace(text)
		if err != nil {
			t.Errorf("ParsePlace(%q): %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParsePlace(%q) (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "-1", "s/0@-1", "s/-2@5", "x", "s/0@1,x", "2026-09-01", "2026-09-01T00:00:00", "s/0@", "@1", "/0@1", "a/x@1", "99999999999999999999"} {
		if got, err := pipeline.ParsePlace(text); err == nil {
			t.Errorf("ParsePlace(%q) = %+v, want an error", text, got)
		} else if !strings.Contains(err.Error(), "place") {
			t.Errorf("ParsePlace(%q): %v, want it to say what a place is", text, err)
		}
	}
}

func TestWhatWasPutAsideIsTheUsers(t *testing.T) {
	for stream, internal := range map[string]bool{
		pipeline.CheckpointStream: true, pipeline.FrontierStream: true, "daybook.whatever": true,
		pipeline.DeadStream("shop", "search"): false, pipeline.LateStream("shop", "search"): false, "shop.changes": false,
	} {
		if got := pipeline.IsInternal(stream); got != internal {
			t.Errorf("%s: internal is %v, want %v", stream, got, internal)
		}
	}
}
