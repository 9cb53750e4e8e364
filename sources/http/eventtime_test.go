package http_test

import (
	"testing"
	"time"
)

func TestEventTimesAreExact(t *testing.T) {
	t.Parallel()
	const noon = 1_790_856_000_000_000 // 2026-10-01T12:00:00Z
	cases := []struct {
		options, value string
		want           int64
	}{
		{"", `"2026-10-01T12:00:00Z"`, noon},
		{"", `"2026-10-01 14:00:00.123456789+02:00"`, noon + 123456},
		{", time_unit: s", `1790856000`, noon},
		{", time_unit: s", `1790856000.000001`, noon + 1},
		{", time_unit: s", `1.790856000123456E9`, noon + 123456},
		{", time_unit: s", `"1790856000"`, noon},
		{", time_unit: ms", `1790856000123.4567`, noon + 123456},
		{", time_unit: us", `1790856000123456`, noon + 123456},
		{", time_unit: ns", `1790856000123456999`, noon + 123456},
		{", time_unit: ns", `"2026-10-01T12:00:00Z"`, noon},
		{", time_zone: Europe/Paris", `"2026-10-01T14:00:00"`, noon},
		{", time_zone: Europe/Paris", `"2026-10-01T12:00:00Z"`, noon},
		{", time_zone: UTC", `"2026-10-01 12:00:00.000001"`, noon + 1},
	}
	for _, c := range cases {
		s := serve(t, ", time_field: ts"+c.options)
		s.wantStored(s.post(`{"ts":`+c.value+`}`), 1, 0)
		for _, r := range s.journal.Records() {
			if r.Time != c.want || len(r.Headers) != 0 {
				t.Errorf("%s%s: got %d and headers %v, want %d", c.value, c.options, r.Time, r.Headers, c.want)
			}
		}
	}
}

// In the gap of spring the time is moved on, in the overlap of autumn the first of
// two instants is taken; both are counted.
func TestWallClocksInGapAndOverlap(t *testing.T) {
	t.Parallel()
	cases := []struct {
		zone, text, want string
		counted          int64
	}{
		{"Europe/Paris", "2026-03-29T02:30:00", "2026-03-29T01:30:00Z", 1}, // shown as 03:30 +02:00
		{"Europe/Paris", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z", 1}, // the first 02:30, +02:00
		{"Europe/Paris", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z", 0},
		{"Europe/Paris", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z", 0},
		{"America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z", 1},
		{"Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T22:00:00Z", 1}, // a day that was skipped
	}
	for _, c := range cases {
		s := serve(t, ", time_field: ts, time_zone: "+c.zone)
		s.wantStored(s.post(`{"ts":"`+c.text+`"}`), 1, 0)
		got := time.UnixMicro(s.journal.Records()[0].Time).UTC().Format(time.RFC3339)
		if got != c.want {
			t.Errorf("%s in %s: got %s, want %s", c.text, c.zone, got, c.want)
		}
		if n := s.source.Report().Counters["time_in_gap_or_fold"]; n != c.counted {
			t.Errorf("%s in %s: counted %d, want %d", c.text, c.zone, n, c.counted)
		}
	}
}

func TestTimesThatAreNotRightAreRefused(t *testing.T) {
	t.Parallel()
	cases := []struct{ options, value, words string }{
		{"", `1790856000`, "time_unit does not say of what"},
		{"", `"1790856000"`, "time_unit does not say of what"},
		{"", `"2026-10-01T12:00:00"`, "has no zone and time_zone is not set"},
		{"", `"yesterday"`, "is not a time"},
		{"", `""`, "is not a time"},
		{"", `{}`, "is an object"},
		{"", `true`, "is true or false"},
		{", time_unit: s", `1790856000000`, "is it in the declared unit, s?"},
		{", time_unit: s", `-1`, "between the years 1970 and 9999"},
		{", time_unit: s", `1e30`, "out of range"},
		{", time_unit: s", `1e999999999999`, "out of range"},
		{"", `"2026-02-30T12:00:00Z"`, "is not a time"},
	}
	for _, c := range cases {
		s := serve(t, ", time_field: ts"+c.options)
		s.want(s.post(`[{},{"ts":`+c.value+`}]`), 400, `element 1: time_field "ts"`, c.words)
		s.wantEmpty()
	}
}

func TestAMissingTimeIsThatOfArrivalAndSaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, ", time_field: ts")
	before := time.Now().UnixMicro()
	s.wantStored(s.post(`[{},{"ts":null}]`), 2, 0)
	after := time.Now().UnixMicro()
	for _, r := range s.journal.Records() {
		if r.Time < before || r.Time > after {
			t.Errorf("got time %d, want one from %d to %d", r.Time, before, after)
		}
		if len(r.Headers) != 1 || r.Headers[0].Key != "daybook.time_from" || string(r.Headers[0].Value) != "arrival" {
			t.Errorf("got headers %q, want daybook.time_from: arrival", r.Headers)
		}
	}
	if n := s.source.Report().Counters["time_from_arrival"]; n != 2 {
		t.Errorf("counted %d times of arrival, want 2", n)
	}
}
