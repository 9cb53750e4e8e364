package sinktest

import (
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

// Keeps says what a destination holds.
type Keeps int

const (
	// Latest is a destination with one row for each id: its newest version.
	Latest Keeps = iota
	// Every is a destination that holds every record once, in order.
	Every
)

// Suite says what is tested and against what.
type Suite struct {
	Keeps Keeps
	// New returns an empty place that no other test uses.
	New func(t *testing.T) Destination
}

// Destination is a place that sinks write to, real or as good as real.
type Destination interface {
	// Config returns a new section that writes here, rows placed by their field "id".
	// It is called once for each run of a sink: all write to the same place.
	Config(t *testing.T) pipeline.SinkConfig
	// Contents returns what a reader finds here now: in any order for Latest, in the
	// order of the records for Every. A shadow's rows are not part of it.
	Contents(t *testing.T) []Row
	// Break makes the destination fail until the returned function is called: it does
	// not answer, or refuses connections, or has no space.
	Break(t *testing.T) (mend func())
}

// Refuser is a Destination that can refuse a record for good.
type Refuser interface {
	// Refuse arranges, before anything is written, that a row like this one is refused:
	// one with this id, or one whose value is no number.
	Refuse(t *testing.T, row Row)
}

// Row is a row or event as the suite writes it: {"id": ID, "v": V}, both texts.
type Row struct {
	ID, V string
}

// Run runs the suite, each promise as a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Suite){
		"flush makes all of it visible":               testVisible,
		"close makes nothing durable":                 testClose,
		"an empty flush succeeds":                     testEmptyFlush,
		"nothing is lost while the destination fails": testOutage,
		"a cancelled flush loses nothing":             testCancel,
		"values arrive as they are":                   testValues,
		"a restart repeats and misses nothing":        testRestart,
		"a target of another stream is refused":       testForeign,
		"a shadow leaves the live target alone":       testShadow,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	if s.Keeps != Latest {
		return
	}
	for name, test := range map[string]func(*testing.T, Suite){
		"a late update does not bring a deleted row back": testLateUpdate,
		"the newest version wins in any order":            testVersionOrder,
		"a moved row leaves its old place":                testMove,
		"a refusal names exactly what was refused":        testRefusal,
		"a truncate removes the rows of its table only":   testTruncate,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// run is one run of a sink, from its opening to its end.
type run struct {
	t    *testing.T
	sink pipeline.Sink
}

// open starts a run as env says; its end is the test's, if it is not closed before.
func open(t *testing.T, d Destination, env pipeline.SinkEnv) *run {
	t.Helper()
	return openConfig(t, d.Config(t), env)
}

func openConfig(t *testing.T, c pipeline.SinkConfig, env pipeline.SinkEnv) *run {
	t.Helper()
	sink, err := c.OpenSink(env)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, sink: sink}
	t.Cleanup(r.close)
	return r
}

func (r *run) close() {
	r.t.Helper()
	if r.sink == nil {
		return
	}
	if err := r.sink.Close(); err != nil {
		r.t.Error(err)
	}
	r.sink = nil
}

// resume calls Resume where the destination holds the cursor.
func (r *run) resume() (c pipeline.Checkpoint, ok bool) {
	r.t.Helper()
	resumer, is := r.sink.(pipeline.Resumer)
	if !is {
		return c, false
	}
	c, ok, err := resumer.Resume(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return c, ok
}

func (r *run) write(batch ...pipeline.Delivery) {
	r.t.Helper()
	if err := r.sink.Write(r.t.Context(), batch); err != nil {
		r.t.Fatal(err)
	}
}

// flush flushes with the offset behind the last of the deliveries as checkpoint.
func (r *run) flush(next int64) {
	r.t.Helper()
	if err := r.sink.Flush(r.t.Context(), UpTo(next)); err != nil {
		r.t.Fatal(err)
	}
}
