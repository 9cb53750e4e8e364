package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// run applies commands as one log entry and returns their results.
func run(t *testing.T, m *Meta, commands ...command) []result {
	t.Helper()
	data, err := encodeEntry(nil, commands)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := m.Apply(&raft.Log{Index: 1, Data: data}).([]result)
	if !ok {
		t.Fatalf("the entry was not applied: %v", m.Err())
	}
	return results
}

// must is run for commands that succeed.
func must(t *testing.T, m *Meta, commands ...command) {
	t.Helper()
	for i, r := range run(t, m, commands...) {
		if r.err != nil {
			t.Fatalf("command %d: %v", i, r.err)
		}
	}
}

func newTestStream(name string, partitions int32) *Stream {
	s, err := NewStream{Name: name, Partitions: partitions, Config: map[string]string{"retention.ms": "1000"}}.stream(1)
	if err != nil {
		panic(err)
	}
	return s
}

// filled is a state with something of everything in it.
func filled(t *testing.T) (*Meta, *Stream) {
	m := newMeta()
	s, gone := newTestStream("orders", 3), newTestStream("gone", 1)
	p := StreamPartition{Stream: s.ID, Partition: 1}
	must(t, m,
		command{Found: &found{"cluster"}},
		command{CreateStream: &createStream{*s}}, command{CreateStream: &createStream{*gone}},
		command{TombstoneStream: &tombstoneStream{gone.ID}},
		command{GrowStream: &growStream{s.ID, 5}},
		command{ConfigureStream: &configureStream{ID: s.ID, Set: map[string]string{"cleanup.policy": "compact"}}},
		command{CommitOffsets: &commitOffsets{Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 1, Offset: 7, LeaderEpoch: -1, Metadata: []byte{0, 255, '"'}, CommitMillis: 5}}}},
		command{ReserveProducerIDs: &reserveProducerIDs{1000}},
		command{PutTransaction: &putTransaction{Transaction: Transaction{ID: "x", ProducerID: 3, State: TxnOngoing, Partitions: []StreamPartition{p}, Groups: []string{"g"}, LastEpoch: -1}}},
		command{PendTxnOffsets: &pendTxnOffsets{TransactionalID: "x", ProducerID: 3, Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 2, Offset: 9}}}},
		command{PutCredential: &putCredential{"ann", Credential{Mechanism: "SCRAM-SHA-512", Iterations: 4096, Salt: []byte{0, 255}, StoredKey: []byte{1}, ServerKey: []byte{2}}}},
		command{PutCredential: &putCredential{"ann", Credential{Mechanism: "SCRAM-SHA-256", Iterations: 4096}}},
		command{JoinCluster: &joinCluster{Token: "t", Address: "a:1", Rack: "r"}},
		command{PutSecret: &putSecret{"00ff"}},
		command{Mirror: &mirrorStreams{Applied: 3}},
		command{CreateACLs: &createACLs{[]ACL{{Resource: "TOPIC", Name: "*", Pattern: "LITERAL", Principal: "User:ann", Host: "*", Operation: "READ", Permission: "ALLOW"}}}},
	)
	data, err := encodeEntry(&origin{Node: 1, Start: 2, Seq: 3}, []command{
		{PutMember: &putMember{Member{ID: 1, Address: "b:1", Listeners: map[string]string{"x": "y"}}}},
		{PlaceJournal: &placeJournal{ID: s.ID, Nodes: []int32{1}}},
		{PlaceJournal: &placeJournal{ID: s.ID, Nodes: []int32{2}}}, // refused
		{ReserveProducerIDs: &reserveProducerIDs{5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(&raft.Log{Index: 2, Term: 1, Data: data})
	return m, s
}

func snapshotOf(t *testing.T, m *Meta) []byte {
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
	restored := newMeta()
	if err := restored.Restore(io.NopCloser(bytes.NewReader(snapshot))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.image(), restored.image()); diff != "" {
		t.Errorf("state differs after the snapshot:\n%s", diff)
	}
	// And it goes on in the same way.
	for _, state := range []*Meta{m, restored} {
		x, _ := state.Transaction("x")
		next := x.clone()
		next.State = TxnCompleteCommit
		must(t, state, command{PutTransaction: &putTransaction{Transaction: *next, From: x.Revision}})
		if o, ok, unstable := state.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); !ok || unstable || o.Offset != 9 {
			t.Errorf("the transaction's offset is %+v, %v, %v; want 9", o, ok, unstable)
		}
	}
	if diff := cmp.Diff(m.image(), restored.image()); diff != "" {
		t.Errorf("states part after the snapshot:\n%s", diff)
	}
}

// S43: a bad snapshot must not pass for an empty state.
func TestDamagedSnapshotIsRefusedWhereverTheDamageIs(t *testing.T) {
	m, _ := filled(t)
	snapshot := snapshotOf(t, m)
	for i := range snapshot {
		damaged := bytes.Clone(snapshot)
		damaged[i] ^= 0x10
		fresh := newMeta()
		if err := fresh.Restore(io.NopCloser(bytes.NewReader(damaged))); err == nil {
			t.Fatalf("byte %d of %d changed: restored all the same", i, len(snapshot))
		}
	}
	for _, n := range []int{0, 1, len(imageMagic), len(snapshot) - 1} {
		if err := newMeta().Restore(io.NopCloser(bytes.NewReader(snapshot[:n]))); err == nil {
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
		good, _ := encodeEntry(nil, []command{{ReserveProducerIDs: &reserveProducerIDs{1}}})
		if _, isErr := m.Apply(&raft.Log{Index: 43, Data: good}).(error); !isErr {
			t.Errorf("%s: went on over the hole", name)
		}
	}
}

func TestTransactionChangesOnlyFromTheStateItWasReadIn(t *testing.T) {
	m, _ := filled(t)
	x, _ := m.Transaction("x")
	put := command{PutTransaction: &putTransaction{Transaction: *x, From: x.Revision}}
	must(t, m, put)
	if r := run(t, m, put)[0]; !errors.Is(r.err, ErrConflict) {
		t.Errorf("the second change from one state gave %v, want ErrConflict", r.err)
	}
}

func TestOnlyIdleTransactionalIDsAreForgotten(t *testing.T) {
	m, _ := filled(t)
	x, _ := m.Transaction("x")
	if r := run(t, m, command{ForgetTransaction: &forgetTransaction{ID: "x", From: x.Revision}})[0]; !errors.Is(r.err, ErrTransactionState) {
		t.Errorf("forgetting an open one: %v, want ErrTransactionState", r.err)
	}
	next := x.clone()
	next.State = TxnCompleteAbort
	must(t, m, command{PutTransaction: &putTransaction{Transaction: *next, From: x.Revision}})
	if r := run(t, m, command{ForgetTransaction: &forgetTransaction{ID: "x", From: x.Revision}})[0]; !errors.Is(r.err, ErrConflict) {
		t.Errorf("forgetting by an old revision: %v, want ErrConflict", r.err)
	}
	must(t, m, command{ForgetTransaction: &forgetTransaction{ID: "x", From: x.Revision + 1}})
	if _, ok := m.Transaction("x"); ok {
		t.Error("it is still there")
	}
}

func TestAbortedTransactionLeavesTheGroupsOffsetsAlone(t *testing.T) {
	m, s := filled(t)
	x, _ := m.Transaction("x")
	next := x.clone()
	next.State = TxnCompleteAbort
	must(t, m, command{PutTransaction: &putTransaction{Transaction: *next, From: x.Revision}})
	if o, ok, unstable := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 2}); ok || unstable {
		t.Errorf("the aborted offset is there: %+v", o)
	}
	if o, ok, _ := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 1}); !ok || o.Offset != 7 {
		t.Errorf("the offset from before is %+v, %v; want 7", o, ok)
	}
}

func TestOffsetsOfADeletedStreamAreGone(t *testing.T) {
	m, s := filled(t)
	must(t, m, command{TombstoneStream: &tombstoneStream{s.ID}})
	late := command{CommitOffsets: &commitOffsets{Group: "g", Offsets: []GroupOffset{{Stream: s.ID, Partition: 1, Offset: 8}}}}
	must(t, m, late) // on its way when the stream was deleted
	if p := m.GroupPartitions("g"); len(p) > 0 {
		t.Errorf("offsets are left for %v", p)
	}
	if r := run(t, m, command{GrowStream: &growStream{s.ID, 9}})[0]; !errors.Is(r.err, ErrUnknownStream) {
		t.Errorf("growing it gave %v, want ErrUnknownStream", r.err)
	}
}

func TestWaitingCommandsShareEntries(t *testing.T) {
	m := newMeta()
	entries, began, hold := 0, make(chan struct{}, 1), make(chan struct{})
	p := newProposer(func(data []byte) (any, error) {
		if entries++; entries == 1 {
			began <- struct{}{}
		}
		<-hold
		return m.Apply(&raft.Log{Data: data}), nil
	}, func() *origin { return nil })
	defer p.close()
	const commits = 100
	results := make(chan error, commits)
	commit := func(i int64) {
		_, err := p.propose(t.Context(), command{CommitOffsets: &commitOffsets{Group: "g", Offsets: []GroupOffset{{Offset: i}}}})
		results <- err
	}
	go commit(0)
	<-began // the others wait for its entry
	for i := range int64(commits - 1) {
		go commit(i + 1)
	}
	for len(p.queue) < commits-1 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	for range commits {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if entries > 3 {
		t.Errorf("%d commits took %d entries, want 2 or 3", commits, entries)
	}
}

func TestLargeCommandsAreSpreadOverEntries(t *testing.T) {
	m := newMeta()
	largest := 0
	p := newProposer(func(data []byte) (any, error) {
		largest = max(largest, len(data))
		return m.Apply(&raft.Log{Data: data}), nil
	}, func() *origin { return nil })
	defer p.close()
	var offsets []GroupOffset
	for i := range 100 {
		offsets = append(offsets, GroupOffset{Partition: int32(i), Metadata: bytes.Repeat([]byte{1}, 4096)})
	}
	results := make(chan error, 50)
	for range cap(results) {
		go func() {
			_, err := p.propose(t.Context(), command{CommitOffsets: &commitOffsets{Group: "g", Offsets: offsets}})
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if largest > entryBytes {
		t.Errorf("an entry had %d bytes, want at most %d", largest, entryBytes)
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
	id := newStreamID()
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
