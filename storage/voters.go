package storage

import "github.com/hashicorp/raft"

// readsDurable says whether only what is on stable storage may be shown.
func (j *Journal) readsDurable() bool { return j.o.ReadDurable || j.lone.Load() }

// countVoters looks whether there is one voter by the last configuration in the log, committed or not: that is who decides
// what is committed. Configurations are synced in every mode, and so is all before them: what was shown under the rule of
// more voters is on stable storage when that of one begins. The caller holds wmu.
func (j *Journal) countVoters() {
	if j.o.Commands || j.o.Mode == Durable {
		return // what is stored is on stable storage
	}
	voters := votersIn(j.tail.config)
	if j.lone.Swap(voters == 1) && voters != 1 {
		j.changed() // more may be shown
	}
}

// votersIn counts the voters of a configuration; 0 if there is none, or none that raft understands.
func votersIn(config []byte) (n int) {
	if len(config) == 0 {
		return 0
	}
	defer func() {
		if recover() != nil { // raft has no other way to say so
			n = 0
		}
	}()
	for _, s := range raft.DecodeConfiguration(config).Servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}
