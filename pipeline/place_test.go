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
	for text, want := range map[string]pipeline.Place{
		"start":                     {Start: true},
		"end":                       {End: true},
		"2026-09-01T02:00:00+02:00": {Time: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)},
		"2026-09-01T00:00:00.25Z":   {Time: time.Date(2026, 9, 1, 0, 0, 0, 250_000_000, time.UTC)},
		"120":                       {Offsets: map[int32]int64{-1: 120}},
		"0:120,3:88":                {Offsets: map[int32]int64{0: 120, 3: 88}},
		"shop.changes/0:120":        {Stream: "shop.changes", Offsets: map[int32]int64{0: 120}},
		"shop.changes/7":            {Stream: "shop.changes", Offsets: map[int32]int64{-1: 7}},
	} {
		got, err := pipeline.ParsePlace(text)
		if err != nil {
			t.Errorf("ParsePlace(%q): %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParsePlace(%q) (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "-1", "0:-1", "-2:5", "x", "0:1,x", "2026-09-01", "2026-09-01T00:00:00", "0:", ":1", "99999999999999999999"} {
		if got, err := pipeline.ParsePlace(text); err == nil {
			t.Errorf("ParsePlace(%q) = %+v, want an error", text, got)
		} else if !strings.Contains(err.Error(), "place") {
			t.Errorf("ParsePlace(%q): %v, want it to say what a place is", text, err)
		}
	}
}
