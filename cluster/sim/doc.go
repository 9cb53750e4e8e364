// Package sim holds a simulation of the groups of package cluster; all of it is test code.
//
// Three to six machines run real members of a journal's group, of a command group, or of both, in one process and in a
// bubble of testing/synctest: time is fake, and a minute of it takes a fraction of a second. Raft, cluster and storage
// are what runs in production. Disks are vfs.Mem. The network is one of two, by the seed: single messages, which may be
// late, lost, doubled or out of order; or the real transport over connections in memory, which may be slow, held back or
// reset.
//
// A seed decides on the settings, and on which faults come when: kill -9 and power cuts of one or all machines (a cut
// keeps a random part of what was not synced, sector by sector), orderly restarts, partitions of all shapes, frozen
// machines, disks that hang, fail, or are full, bits that flip in sealed segments, on several machines at different places,
// and in the command log of one, segments that are cut short or gone, a disk that says "synced" and forgets it with its power,
// leads handed over, leads that are taken by a member that is slow to write its first entry, or while the leader before it
// cannot hear of that, a power cut that makes a majority of a minority that lacks records, snapshots, machines that are
// exchanged, or several of these at once. Then all heals, and what is damaged is mended.
//
// Meanwhile clients append, idempotently or not, propose commands, and read from every member. What they were told must
// stay true: acknowledged records are on every member where it was said, refused ones nowhere, batches sent again once;
// an offset that was shown shows the same for ever, on all members; no end goes back; a leader tells no end that lacks what
// was acknowledged before it was asked; a term has one leader; after a barrier there is all that was acknowledged before. In
// the end all members serve and have the same, frame by frame, within a minute of fake time, and damage is found nowhere but
// where a bit was flipped.
//
// Run one seed, with its whole trace: DAYBOOK_SIM_SEED=17 go test -run TheGroups -v ./cluster/sim. DAYBOOK_SEEDS
// multiplies the number of seeds, DAYBOOK_SIM_FROM is the first one, and DAYBOOK_SIM_KINDS=usurp,kill has all of them suffer from these kinds
// of faults (faults_test.go names them) instead of those that each draws. The plan of faults is the same in every run of a
// seed; what happens in between is not always: raft draws its timers from the global source of random numbers, and
// select picks among ready cases as it likes.
//
// What it cannot do: clocks that jump (the bubble has one), a process that is stopped and goes on (its network and its
// disk stand still, its timers do not), a kernel that drops dirty pages after a failed sync. In the mode
// replicated the power is cut of a minority at a time, as more than that is not promised to be survived; and a disk forgets
// only records that all other machines have, and no votes.
package sim
