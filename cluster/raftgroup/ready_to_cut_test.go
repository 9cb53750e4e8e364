package raftgroup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// A snapshot whose place in the log there is no room for is refused before anything of it is done, and taken when there is.
func TestASnapshotThatTheLogHasNoRoomForIsTakenLater(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]vfs.Fault{
		"descriptors": {Op: vfs.OpOpen, Name: "spare-", Keep: true, Err: syscall.EMFILE},
		"disk full":   {Op: vfs.OpAllocate, Name: "spare-", Keep: true, Err: syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, b := play(t, true)
			disk := vfs.NewFaulty(vfs.NewMem())
			g, st := openFSM(t, raftgroup.Options{Dir: "member", ID: "b", Transport: b, Timeout: time.Hour, Journal: storage.Options{FS: disk}})
			had := map[string]int{}
			for i := uint64(2); i <= 41; i++ {
				command := fmt.Sprint("command", i)
				must(t, p.journal.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte(command)}))
				if i <= 40 {
					had[command] = 1
				}
			}
			p.send(0, 10, 10)
			disk.Inject(fault)
			state, err := json.Marshal(had)
			must(t, err)
			req := &raft.InstallSnapshotRequest{
				SnapshotVersion: raft.SnapshotVersionMax, Term: 1, LastLogIndex: 40, LastLogTerm: 1,
				Configuration: raft.EncodeConfiguration(playedPeers), ConfigurationIndex: 1, Size: int64(len(state)),
			}
			var resp raft.InstallSnapshotResponse
			if err := p.trans.InstallSnapshot("b", "b", req, &resp, bytes.NewReader(state)); err == nil && resp.Success {
				t.Error("the snapshot was taken")
			}
			must(t, g.Err())
			must(t, g.Journal().Err())
			disk.Heal()
			p.install(40, 1, state)
			p.send(40, 41, 41)
			(&members{t: t}).until("all to be applied", func() bool { return st.of("command41") == 1 && st.of("command40") == 1 })
			must(t, g.Journal().Err())
		})
	}
}
