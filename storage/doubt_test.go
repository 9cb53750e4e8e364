package storage_test

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// machine is a computer with a journal.
type machine struct {
	t    *testing.T
	disk *vfs.Mem
	o    storage.Options
	j    *storage.Journal
}

func newDoubtMachine(t *testing.T, mode storage.Mode) *machine {
	m := &machine{t: t, disk: vfs.NewMem(), o: storage.Options{Mode: mode, Boot: "first", SegmentBytes: 64 << 10}}
	m.open()
	return m
}

func (m *machine) open() {
	m.t.Helper()
	m.o.FS = m.disk
	var err error
	if m.j, err = storage.Open("journal", m.o); err != nil {
		m.t.Fatal(err)
	}
}

// end ends the process; boot is that in which the next one runs. What is not synced is lost with the power.
func (m *machine) end(power bool, boot string) {
	m.t.Helper()
	var kept []vfs.Doubt
	if !power {
		kept = m.disk.Doubts()
	}
	left := m.disk.Crash(kept)
	if err := m.j.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.disk, m.o.Boot = left, boot
	m.open()
}

func (m *machine) stop(boot string) {
	m.t.Helper()
	if err := m.j.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.o.Boot = boot
	m.open()
}

func (m *machine) store(index uint64, typ raft.LogType) {
	m.t.Helper()
	l := &raft.Log{Index: index, Term: 1, Type: typ}
	if typ == raft.LogConfiguration {
		l.Data = raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}})
	}
	if err := m.j.StoreLog(l); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) want(doubt bool, when string) {
	m.t.Helper()
	if got := m.j.Doubt(); got != doubt {
		m.t.Fatalf("%s: in doubt is %v, want %v", when, got, doubt)
	}
}

func TestAMachinesLossOfPowerLeavesAJournalInDoubt(t *testing.T) {
	t.Parallel()
	m := newDoubtMachine(t, storage.Replicated)
	defer func() { _ = m.j.Close() }()
	m.want(false, "new")
	m.store(1, raft.LogNoop)
	m.end(false, "first")
	m.want(false, "its process was killed")
	m.stop("second")
	m.want(false, "the machine was restarted in order")
	m.end(false, "second")
	m.want(false, "its process was killed in the second boot")
	m.store(2, raft.LogNoop)
	m.end(true, "third")
	m.want(true, "the power was cut")
}

func TestDoubtLastsUntilItIsEnded(t *testing.T) {
	t.Parallel()
	m := newDoubtMachine(t, storage.Replicated)
	defer func() { _ = m.j.Close() }()
	m.store(1, raft.LogNoop)
	m.end(true, "second")
	m.want(true, "the power was cut")
	m.end(false, "second")
	m.want(true, "its process was killed in doubt")
	m.stop("third")
	m.want(true, "the machine was restarted in order in doubt")
	m.o.Mode = storage.Durable
	m.stop("third")
	m.want(true, "it is durable from now on")
	if err := m.j.EndDoubt(); err != nil {
		t.Fatal(err)
	}
	m.want(false, "doubt was ended")
	m.end(true, "fourth")
	m.want(false, "the power was cut of a durable journal")
}

// A journal that is in doubt, or may come to be, after one that was not.
func TestTheModeOfTheLastRunDecidesAboutDoubt(t *testing.T) {
	t.Parallel()
	m := newDoubtMachine(t, storage.Durable)
	defer func() { _ = m.j.Close() }()
	m.store(1, raft.LogNoop)
	m.o.Mode = storage.Replicated
	m.end(true, "second")
	m.want(false, "all had been durable")
	m.o.Mode = storage.Durable
	m.end(true, "third")
	m.want(true, "it had been replicated")
}

// All who may have entries are known even to who has lost some: the members of a group are synced in every mode.
func TestAConfigurationIsSyncedInEveryMode(t *testing.T) {
	t.Parallel()
	m := newDoubtMachine(t, storage.Replicated)
	defer func() { _ = m.j.Close() }()
	m.store(1, raft.LogNoop)
	m.store(2, raft.LogConfiguration)
	m.store(3, raft.LogNoop)
	m.end(true, "second")
	if last, err := m.j.LastIndex(); err != nil || last != 2 {
		t.Fatalf("the log ends with entry %d (%v), want 2", last, err)
	}
	if index, term := m.j.LastEntry(); index != 2 || term != 1 {
		t.Fatalf("the last entry is %d of term %d", index, term)
	}
}
