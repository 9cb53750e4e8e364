package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPartitionsAreThoseOfKafkasClients(t *testing.T) {
	t.Parallel()
	// The hashes are those that Kafka's own test of its hash function lists.
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
	} {
		p := newPartitioner("key", 7)
		if got, want := p.choose(&Record{Key: []byte(key)}), (hash&0x7fffffff)%7; got != want {
			t.Errorf("key %s: partition %d, want %d", key, got, want)
		}
	}
	p := newPartitioner("table", 7)
	a := p.choose(&Record{Key: []byte("1"), Table: "shop.orders"})
	if b := p.choose(&Record{Key: []byte("2"), Table: "shop.orders"}); a != b {
		t.Errorf("one table lies in partitions %d and %d", a, b)
	}
	p = newPartitioner("none", 3)
	used := map[int32]bool{}
	for range 9 {
		used[p.choose(&Record{Key: []byte("k")})] = true
		p.turn()
	}
	if len(used) != 3 {
		t.Errorf("none uses %d of 3 partitions", len(used))
	}
}

func TestStampsOfAllWritersRise(t *testing.T) {
	t.Parallel()
	var s stamper
	s.raise(time.Now().Add(time.Hour).UnixMicro()) // a clock that was set back
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var last int64
			for range 1000 {
				v := s.reserve(3)
				if v <= last {
					t.Errorf("%d after %d", v, last)
				}
				last = v + 2
				mu.Lock()
				for i := range int64(3) {
					if seen[v+i] {
						t.Errorf("%d was given twice", v+i)
					}
					seen[v+i] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestRecordsSurviveTheWayThroughKafka(t *testing.T) {
	t.Parallel()
	const at = 1_790_000_000_123_456
	for _, times := range []timestamps{{to: 1 << 62}, {none: true}, {from: at + 1, to: 1 << 62}, {to: at - 1}} {
		for _, r := range []Record{
			{Stream: "s", Partition: 2, Key: []byte("k"), Value: []byte("v"), Time: at - 456, Stamp: 7, Source: "src", Position: "p", Table: "a.b",
				Headers: []Header{{Key: "x", Value: []byte("y")}}},
			{Stream: "s", Time: at, Stamp: 8},
			{Stream: "s", Time: -5_000, Stamp: 9, Value: []byte{}},
			{Stream: "s", Time: -1, Stamp: 10, Headers: []Header{{Key: "", Value: nil}}},
		} {
			var k kgo.Record
			toKafka(&k, &r, times, make([]kgo.RecordHeader, len(r.Headers)+stampHeaders), nil)
			outside := times.none || r.Time < times.from || r.Time > times.to
			if want := map[bool]int64{false: r.Time, true: r.Stamp}[outside]; k.Timestamp.UnixMicro() != want {
				t.Errorf("%+v: timestamp %d, want %d", times, k.Timestamp.UnixMicro(), want)
			}
			k.Timestamp = k.Timestamp.Truncate(time.Millisecond) // as Kafka stores it
			if times.none {
				k.Timestamp = time.Now()
			}
			if got := fromKafka(&k, interner{}); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", r) {
				t.Errorf("%+v: got %+v, want %+v", times, got, r)
			}
		}
	}
}

// An app's "never" is often the last second of the year 9999.
func TestEveryYearSurvivesTheClient(t *testing.T) {
	t.Parallel()
	for _, info := range []StreamInfo{{}, {AppendTime: true}, {newest: 1<<63 - 1}} {
		for _, at := range []string{"9999-12-31T23:59:59.999999Z", "2262-04-11T23:47:16.854776Z", "2262-04-11T23:47:16Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
			when, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				t.Fatal(err)
			}
			r := Record{Stream: "s", Time: when.UnixMicro(), Stamp: 1_790_000_000_000_000}
			var k kgo.Record
			toKafka(&k, &r, info.timestamps(), make([]kgo.RecordHeader, stampHeaders), nil)
			k.Timestamp = time.UnixMilli(k.Timestamp.UnixNano() / 1e6) // as kgo puts it on the wire
			if got := fromKafka(&k, nil); got.Time != r.Time {
				t.Errorf("%s comes back as %s", at, time.UnixMicro(got.Time).UTC())
			}
		}
	}
}

// A long transaction that the journal holds in part is read again from its beginning, and
// none of its records is fresh for a long time: they must not fill the flight.
func TestRepeatsTakeNoRoomInFlight(t *testing.T) {
	t.Parallel()
	f := newFlight("start", map[int32]int64{0: 0}, false, func(error) {})
	full := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // room is there at once, or not at all
		return f.room(ctx, maxInFlight)
	}
	for range 3 {
		f.open(0, maxInFlight, "")
		if err := full(); err != nil || f.onTheWay() != 0 {
			t.Fatalf("%d bytes are on the way after repeats alone: %v", f.onTheWay(), err)
		}
	}
	s := f.open(1, maxInFlight, "")
	f.open(0, maxInFlight, "")
	if err := full(); err == nil {
		t.Error("there is room behind a full flight")
	}
	f.ack(s, 0, 0, nil)
	if err := full(); err != nil || f.onTheWay() != 0 {
		t.Errorf("%d bytes are on the way at the end: %v", f.onTheWay(), err)
	}
}

func TestFlightKnowsWhatIsDurable(t *testing.T) {
	t.Parallel()
	var failed error
	f := newFlight("start", map[int32]int64{0: 100, 1: 200}, false, func(err error) { failed = err })
	check := func(when string, resume Position, ends, reached string) {
		t.Helper()
		p := f.durablePrefix()
		if p.resume != resume || fmt.Sprint(p.ends) != ends || fmt.Sprint(p.reached) != reached {
			t.Errorf("%s: got %q %v %v, want %q %s %s", when, p.resume, p.ends, p.reached, resume, ends, reached)
		}
	}
	a := f.open(2, 10, "a")
	b := f.open(1, 5, "") // the middle of a transaction
	c := f.open(1, 5, "c")
	f.open(0, 0, "d") // moves on with c
	f.ack(b, 1, 200, nil)
	check("before the first is whole", "start", "map[0:100 1:200]", "map[0:100 1:200]")
	f.ack(a, 0, 100, nil)
	f.ack(a, 0, 101, nil)
	check("the ends stay where the source goes on", "a", "map[0:102 1:200]", "map[0:102 1:201]")
	f.advance(f.opened(), map[int32]int64{0: 900})
	check("no moving on while something is under way", "a", "map[0:102 1:200]", "map[0:102 1:201]")
	f.ack(c, 0, 102, nil)
	check("all is there", "d", "map[0:103 1:201]", "map[0:103 1:201]")
	f.advance(f.opened(), map[int32]int64{0: 900, 1: 5})
	check("silence moves the ends on", "d", "map[0:900 1:201]", "map[0:900 1:201]")
	e := f.open(1, 5, "")
	f.ack(e, 0, 905, nil)
	f.advance(f.opened(), map[int32]int64{0: 950})
	check("not over what the source will emit again", "d", "map[0:900 1:201]", "map[0:906 1:201]")
	f.open(1, 5, "f")
	boom := errors.New("boom")
	f.stop(boom)
	if err := f.durable(t.Context(), f.opened()); !errors.Is(err, boom) || !errors.Is(failed, boom) {
		t.Errorf("after a failure: %v, %v", err, failed)
	}
}

func TestFlightWaitsForTheCommit(t *testing.T) {
	t.Parallel()
	f := newFlight("", map[int32]int64{0: 0}, true, func(error) {})
	a := f.open(1, 1, "a")
	f.ack(a, 0, 0, nil)
	if f.durablePrefix().resume != "" || f.idle() {
		t.Error("an acknowledged record counts before its transaction is committed")
	}
	b := f.open(1, 1, "b")
	f.ack(b, 0, 1, nil)
	f.commit(a.number)
	if p := f.durablePrefix(); p.resume != "a" || p.ends[0] != 1 {
		t.Errorf("got %q %v, want a and 1", p.resume, p.ends)
	}
}

func TestWindowForgetsByAppendTime(t *testing.T) {
	t.Parallel()
	w := newSeenWindow(100)
	steps := []struct {
		position string
		stamp    int64
		repeats  bool
	}{{"a", 0, false}, {"a", 50, true}, {"b", 60, false}, {"a", 100, true}, {"a", 101, false}, {"b", 160, true}, {"b", 161, false}, {"a", 200, true}}
	for _, s := range steps {
		if got := w.repeats(s.position, s.stamp); got != s.repeats {
			t.Errorf("%s at %d: repeats %v, want %v", s.position, s.stamp, got, s.repeats)
		}
	}
	for i := range int64(10_000) {
		w.repeats(fmt.Sprint(i), 1000+i)
	}
	if w.len() > 102 || len(w.queue) > 3000 {
		t.Errorf("%d positions in a queue of %d after 10,000 µs", w.len(), len(w.queue))
	}
}

func TestJoinerForgetsWhatItsWriterWroteAnew(t *testing.T) {
	t.Parallel()
	piece := func(source, mark, value string) *kgo.Record {
		k := &kgo.Record{Value: []byte(value), Headers: []kgo.RecordHeader{{Key: HeaderSource, Value: []byte(source)}}}
		if mark != "" {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: HeaderChunk, Value: []byte(mark)})
		}
		return k
	}
	var j joiner
	steps := []struct {
		k    *kgo.Record
		want string // value, "-" for none yet, or the error
	}{
		{piece("a", "1/2/5", "x"), "-"},
		{piece("b", "1/2/5", "other"), "-"},
		{piece("a", "1/2/9", "on"), "-"}, // a crashed and writes the record anew
		{piece("a", "2/2/9", "e"), "one"},
		{piece("b", "2/2/5", "!"), "other!"},
		{piece("a", "1/2/11", "x"), "-"},
		{piece("a", "", "plain"), "plain"},
		{piece("a", "2/2/11", "x"), "piece 2 of 2"},
		{piece("a", "3/2/11", "x"), "is broken"},
		{piece("a", "nonsense", "x"), "is broken"},
	}
	for i, s := range steps {
		whole, err := j.add(s.k)
		got := "-"
		switch {
		case err != nil:
			got = err.Error()
		case whole != nil:
			got = string(whole.Value)
		}
		if !strings.Contains(got, s.want) {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	if len(j.open) != 0 {
		t.Errorf("%d records stay open", len(j.open))
	}
}

func TestFrontierIsThatOfTheSlowestSource(t *testing.T) {
	t.Parallel()
	b := newFrontierBook([]StreamInfo{{Name: "s", ID: "1"}})
	now := time.Unix(1000, 0)
	say := func(source string, stamp, end int64, change ...func(*frontier)) {
		f := frontier{Pipeline: "p", Source: source, Stream: "s", StreamID: "1", Stamp: stamp, Ends: []int64{end}}
		for _, c := range change {
			c(&f)
		}
		b.note(f, now)
	}
	want := func(when string, read, stamp int64, known bool) {
		t.Helper()
		got, ok := b.stamp("s", func(int32) int64 { return read }, now)
		if got != stamp || ok != known {
			t.Errorf("%s: got %d, %v, want %d, %v", when, got, ok, stamp, known)
		}
	}
	want("nothing said", 0, 0, false)
	say("a", 50, 10)
	say("a", 60, 20)
	want("nothing read", 0, 0, true)
	want("the first reached", 10, 50, true)
	want("the second too", 25, 60, true)
	say("b", 30, 0)
	want("another source is behind", 25, 30, true)
	say("b", 70, 26)
	want("until its records are read", 25, 30, true)
	want("they are", 26, 60, true)
	say("c", 1, 0, func(f *frontier) { f.StreamID = "2" })
	want("of a stream that is no more", 26, 60, true)
	say("a", 0, 0, func(f *frontier) { f.Closed = true })
	want("one has ended", 26, 70, true)
	now = now.Add(2 * frontierGone)
	want("the other is gone", 26, 0, false)
	for i := range int64(1000) {
		say("d", 100+i, i)
	}
	if n := len(b.streams["s"].sources["p/d"].promises); n > maxPromises {
		t.Errorf("%d promises are kept", n)
	}
	want("the oldest and the newest promises are still known", 5000, 1099, true)
}

func TestPartitionIsAKeyOfJSON(t *testing.T) {
	t.Parallel()
	for _, p := range []Partition{{"a", 0}, {"a.b-c", 12}} {
		text, err := p.MarshalText()
		var back Partition
		if err := errors.Join(err, back.UnmarshalText(text)); err != nil || back != p {
			t.Errorf("%v came back as %v, %v", p, back, err)
		}
	}
}
