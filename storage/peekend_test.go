package storage_test

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// tip looks at a journal without opening it.
func tip(t *testing.T, fsys vfs.FS) storage.Tip {
	t.Helper()
	p, err := storage.OpenPeek(fsys, "j")
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.Tip(true)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := p.Tip(false)
	if quick.Config = all.Config; err != nil || quick.Index != all.Index || quick.Term != all.Term || quick.Position != all.Position || !quick.At.Equal(all.At) || quick.Doubt != all.Doubt {
		t.Errorf("the last segment says %+v, %v, all of them %+v", quick, err, all)
	}
	return all
}

// The end of a log is seen from its files: over many segments, and also where the last one is empty.
func TestTheEndOfALogIsSeenWithoutOpeningIt(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, "j", storage.Options{FS: mem, SegmentBytes: 4096})
	conf := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "7", Address: "7"}}})
	if err := l.StoreLog(&raft.Log{Index: 1, Term: 3, Type: raft.LogConfiguration, Data: conf}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetUint64([]byte("CurrentTerm"), 9); err != nil {
		t.Fatal(err)
	}
	for l.term = 4; l.term < 300; l.term++ {
		l.noop()
		got := tip(t, mem)
		_, end := l.LogEnd()
		if got.Index != l.last() || got.Term != l.term || got.Position != end || got.CurrentTerm != 9 || string(got.Config) != string(conf) || got.Doubt {
			t.Fatalf("after entry %d of term %d, at position %d, it is %+v", l.last(), l.term, end, got)
		}
		if at := l.PositionOf(l.last()); at != end {
			t.Fatalf("entry %d ends at %d, the log at %d", l.last(), at, end)
		}
	}
}

// A copy whose machine lost power is seen to be in doubt before anybody opens it, and after that, until it is believed.
func TestDoubtIsSeenWithoutOpeningTheLog(t *testing.T) {
	mem := vfs.NewMem()
	o := storage.Options{FS: mem, Mode: storage.Replicated, Boot: "one"}
	l := openLog(t, "j", o)
	l.noop()
	lost := mem.Crash(mem.Doubts())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if tip(t, mem).Doubt {
		t.Error("a log that was closed in order is in doubt")
	}
	if !tip(t, lost).Doubt {
		t.Error("a log of another boot is not in doubt")
	}
	o.FS, o.Boot = lost, "two"
	again := openLog(t, "j", o)
	if !again.Doubt() || !tip(t, lost).Doubt {
		t.Error("when it was opened it is not in doubt any more")
	}
	if err := again.EndDoubt(); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if tip(t, lost).Doubt {
		t.Error("it is in doubt still")
	}
}
