package metadata

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// run applies commands as one log entry and returns their results.
func run(t *testing.T, m *State, commands ...Command) []Result {
	t.Helper()
	data, err := EncodeEntry(nil, commands)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := m.Apply(&raft.Log{Index: 1, Data: data}).([]Result)
	if !ok {
		t.Fatalf("the entry was not applied: %v", m.Err())
	}
	return results
}

// must is run for commands that succeed.
func must(t *testing.T, m *State, commands ...Command) {
	t.Helper()
	for i, r := range run(t, m, commands...) {
		if r.Err != nil {
			t.Fatalf("command %d: %v", i, r.Err)
		}
	}
}

func newTestStream(name string, partitions int32) *Stream {
	s, err := NewStream{Name: name, Partitions: partitions, Config: map[string]string{"retention.ms": "1000"}}.Stream(1)
	if err != nil {
		panic(err)
	}
	return s
}

// filled is a state with something of everything in it.
func filled(t *testing.T) (*State, *Stream) {
	m := New()
	s, gone := newTestStream("orders", 3), newTestStream("gone", 1)
	p := StreamPartition{Stream: s.ID, Partition: 1}
	must(t, m,
		Command{Found: &Found{"cluster"}},
		Command{CreateStream: &CreateStream{*s}}, Command{CreateStream: &CreateStream{*gone}},
		Command{TombstoneStream: &TombstoneStream{gone.ID}},
		Command{GrowStream: &GrowStream{s.ID, 5}},
		Command{ConfigureStream: &ConfigureStream{ID: s.ID, Set: map[string]string{"cleanup.policy": "compact"}}},
		Command{CommitOffsets: &CommitOffsets{Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 1, Offset: 7, LeaderEpoch: -1, Metadata: []byte{0, 255, '"'}, CommitMillis: 5}}}},
		Command{ReserveProducerIDs: &ReserveProducerIDs{1000}},
		Command{PutTransaction: &PutTransaction{Transaction: Transaction{ID: "x", ProducerID: 3, State: TxnOngoing, Partitions: []StreamPartition{p}, Groups: []string{"g"}, LastEpoch: -1}}},
		Command{PendTxnOffsets: &PendTxnOffsets{TransactionalID: "x", ProducerID: 3, Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 2, Offset: 9}}}},
		Command{PutCredential: &PutCredential{"ann", Credential{Mechanism: "SCRAM-SHA-512", Iterations: 4096, Salt: []byte{0, 255}, StoredKey: []byte{1}, ServerKey: []byte{2}}}},
		Command{PutCredential: &PutCredential{"ann", Credential{Mechanism: "SCRAM-SHA-256", Iterations: 4096}}},
		Command{JoinCluster: &JoinCluster{Token: "t", Address: "a:1", Rack: "r"}},
		Command{PutSecret: &PutSecret{"00ff"}},
		Command{Mirror: &MirrorStreams{Applied: 3}},
		Command{CreateACLs: &CreateACLs{[]ACL{{Resource: "TOPIC", Name: "*", Pattern: "LITERAL", Principal: "User:ann", Host: "*", Operation: "READ", Permission: "ALLOW"}}}},
	)
	data, err := EncodeEntry(&Origin{Node: 1, Start: 2, Seq: 3}, []Command{
		{PutMember: &PutMember{Member{ID: 1, Address: "b:1", Listeners: map[string]string{"x": "y"}}}},
		{PlaceJournal: &PlaceJournal{ID: s.ID, Nodes: []int32{1}}},
		{PlaceJournal: &PlaceJournal{ID: s.ID, Nodes: []int32{2}}}, // refused
		{ReserveProducerIDs: &ReserveProducerIDs{5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(&raft.Log{Index: 2, Term: 1, Data: data})
	return m, s
}

func snapshotOf(t *testing.T, m *State) []byte {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sink := &memorySink{}
	if err := s.Persist(sink); err != nil {
		t.Fatal(err)
	}
	return sink.Bytes()
}

type memorySink struct{ bytes.Buffer }

func (*memorySink) ID() string    { return "snapshot" }
func (*memorySink) Cancel() error { return nil }
func (*memorySink) Close() error  { return nil }

func TestRestoredSnapshotIsTheSameState(t *testing.T) {
	m, s := filled(t)
	for v, i := reflect.ValueOf(m.image()), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("there is nothing of %s in the state", v.Type().Field(i).Name)
		}
	}
	snapshot := snapshotOf(t, m)
	restored := New()
	if err := restored.Restore(io.NopCloser(bytes.NewReader(snapshot))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.image(), restored.image()); diff != "" {
		t.Errorf("state differs after the snapshot:\n%s", diff)
	}
	// And it goes on in the same way.
	for _, state := range []*State{m, restored} {
		x, _ := state.Transaction("x")
		next := x.clone()
		next.State = TxnCompleteCommit
		must(t, state, Command{PutTransaction: &PutTransaction{Transaction: *next, From: x.Revision}})
		if o, ok, unstable := state.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); !ok || unstable || o.Offset != 9 {
			t.Errorf("the transaction's offset is %+v, %v, %v; want 9", o, ok, unstable)
		}
	}
	if diff := cmp.Diff(m.image(), restored.image()); diff != "" {
		t.Errorf("states part after the snapshot:\n%s", diff)
	}
}

// A bad snapshot must not pass for an empty state.
func TestDamagedSnapshotIsRefusedWhereverTheDamageIs(t *testing.T) {
	m, _ := filled(t)
	snapshot := snapshotOf(t, m)
	for i := range snapshot {
		damaged := bytes.Clone(snapshot)
		damaged[i] ^= 0x10
		fresh := New()
		if err := fresh.Restore(io.NopCloser(bytes.NewReader(damaged))); err == nil {
			t.Fatalf("byte %d of %d changed: restored all the same", i, len(snapshot))
		}
	}
	for _, n := range []int{0, 1, len(imageMagic), len(snapshot) - 1} {
		if err := New().Restore(io.NopCloser(bytes.NewReader(snapshot[:n]))); err == nil {
			t.Errorf("cut to %d bytes: restored all the same", n)
		}
	}
}

func TestEntryOfALaterVersionStopsTheState(t *testing.T) {
	for name, data := range map[string]string{
		"version":         `{"v":2,"commands":[]}`,
		"unknown command": `{"v":1,"commands":[{"fly_to_the_moon":{}}]}`,
		"empty command":   `{"v":1,"commands":[{}]}`,
		"no JSON":         "\x00",
	} {
		m, _ := filled(t)
		if _, isErr := m.Apply(&raft.Log{Index: 42, Data: []byte(data)}).(error); !isErr {
			t.Errorf("%s: applied", name)
		}
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), "metadata entry 42") {
			t.Errorf("%s: state says %v, want the entry named", name, err)
		}
		good, _ := EncodeEntry(nil, []Command{{ReserveProducerIDs: &ReserveProducerIDs{1}}})
		if _, isErr := m.Apply(&raft.Log{Index: 43, Data: good}).(error); !isErr {
			t.Errorf("%s: went on over the hole", name)
		}
	}
}

func TestTransactionChangesOnlyFromTheStateItWasReadIn(t *testing.T) {
	m, _ := filled(t)
	x, _ := m.Transaction("x")
	put := Command{PutTransaction: &PutTransaction{Transaction: *x, From: x.Revision}}
	must(t, m, put)
	if r := run(t, m, put)[0]; !errors.Is(r.Err, ErrConflict) {
		t.Errorf("the second change from one state gave %v, want ErrConflict", r.Err)
	}
}

func TestOnlyIdleTransactionalIDsAreForgotten(t *testing.T) {
	m, _ := filled(t)
	x, _ := m.Transaction("x")
	if r := run(t, m, Command{ForgetTransaction: &ForgetTransaction{ID: "x", From: x.Revision}})[0]; !errors.Is(r.Err, ErrTransactionState) {
		t.Errorf("forgetting an open one: %v, want ErrTransactionState", r.Err)
	}
	next := x.clone()
	next.State = TxnCompleteAbort
	must(t, m, Command{PutTransaction: &PutTransaction{Transaction: *next, From: x.Revision}})
	if r := run(t, m, Command{ForgetTransaction: &ForgetTransaction{ID: "x", From: x.Revision}})[0]; !errors.Is(r.Err, ErrConflict) {
		t.Errorf("forgetting by an old revision: %v, want ErrConflict", r.Err)
	}
	must(t, m, Command{ForgetTransaction: &ForgetTransaction{ID: "x", From: x.Revision + 1}})
	if _, ok := m.Transaction("x"); ok {
		t.Error("it is still there")
	}
}

func TestAbortedTransactionLeavesTheGroupsOffsetsAlone(t *testing.T) {
	m, s := filled(t)
	x, _ := m.Transaction("x")
	next := x.clone()
	next.State = TxnCompleteAbort
	must(t, m, Command{PutTransaction: &PutTransaction{Transaction: *next, From: x.Revision}})
	if o, ok, unstable := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); ok || unstable {
		t.Errorf("the aborted offset is there: %+v", o)
	}
	if o, ok, _ := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 1}); !ok || o.Offset != 7 {
		t.Errorf("the offset from before is %+v, %v; want 7", o, ok)
	}
}

// What a group was given last counts, whichever transaction ends last, also after a restart in between.
func TestATransactionsOffsetDoesNotUndoALaterOne(t *testing.T) {
	m, s := filled(t) // x has added offset 9 of partition 2
	commit := Command{CommitOffsets: &CommitOffsets{Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 2, Offset: 11}}}}
	must(t, m, commit)
	restored := New()
	if err := restored.Restore(io.NopCloser(bytes.NewReader(snapshotOf(t, m)))); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*State{"as it is": m, "restored": restored} {
		if o, _, unstable := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); o.Offset != 11 || !unstable {
			t.Errorf("%s: before the end the offset is %d, unstable %v; want 11, unstable", name, o.Offset, unstable)
		}
		x, _ := m.Transaction("x")
		next := x.clone()
		next.State = TxnCompleteCommit
		must(t, m, Command{PutTransaction: &PutTransaction{Transaction: *next, From: x.Revision}})
		if o, _, unstable := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); o.Offset != 11 || unstable {
			t.Errorf("%s: the offset is %d, unstable %v; want 11, stable", name, o.Offset, unstable)
		}
	}
}

func TestOffsetsOfADeletedStreamAreGone(t *testing.T) {
	m, s := filled(t)
	must(t, m, Command{TombstoneStream: &TombstoneStream{s.ID}})
	late := Command{CommitOffsets: &CommitOffsets{Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 1, Offset: 8}}}}
	must(t, m, late) // on its way when the stream was deleted
	if p := m.GroupPartitions("g"); len(p) > 0 {
		t.Errorf("offsets are left for %v", p)
	}
	if r := run(t, m, Command{GrowStream: &GrowStream{s.ID, 9}})[0]; !errors.Is(r.Err, ErrUnknownStream) {
		t.Errorf("growing it gave %v, want ErrUnknownStream", r.Err)
	}
}

func TestEverySettingHasADefaultThatPassesItsOwnCheck(t *testing.T) {
	for _, s := range Settings() {
		if err := s.Check(s.Default); err != nil && s.Default != "" {
			t.Errorf("%s: %v", s.Name, err)
		}
		if s.Doc == "" {
			t.Errorf("%s has no sentence", s.Name)
		}
	}
	for _, bad := range []map[string]string{
		{"no.such.setting": "1"}, {"retention.ms": "soon"}, {"retention.ms": "-2"}, {"cleanup.policy": "burn"},
		{"compression.type": "zstd"}, {"max.message.bytes": "12582913"}, {"daybook.durability": "maybe"},
	} {
		if err := CheckConfig(bad); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%v: %v, want ErrInvalidConfig", bad, err)
		}
	}
}

func TestStreamIDReadsWhatItWrites(t *testing.T) {
	id := NewStreamID()
	data, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	var back StreamID
	if err := json.Unmarshal(data, &back); err != nil || back != id {
		t.Errorf("%s came back as %s, %v", id, back, err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("-", 36), id.String()[:35], id.String() + "0"} {
		if _, err := ParseStreamID(bad); err == nil {
			t.Errorf("%q passed for a stream id", bad)
		}
	}
}
