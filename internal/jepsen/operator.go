//go:build linux

package jepsen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// operator changes a cluster while it is used and while it breaks, with the command that operators have. What is refused
// or does not come to an end is given up, as operators do.
type operator struct {
	c   *Cluster
	rnd *rand.Rand
	// fewest is how many copies a journal has at least.
	fewest int
	note   func(what string)

	said     string         // noted last
	removing *member        // a removal of which nobody knows how far it came
	done     map[string]int // how often each change was made to its end
}

const (
	// changeWithin is how long a change may take; most begin at once and go on by themselves.
	changeWithin = 10 * time.Second
	// emptyWithin is how long a node may take to be emptied.
	emptyWithin = 30 * time.Second
)

func newOperator(c *Cluster, seed uint64, fewest int, note func(string)) *operator {
	return &operator{c: c, rnd: rand.New(rand.NewPCG(seed, 3)), fewest: fewest, note: note, done: map[string]int{}}
}

// state is what of `daybook cluster status` an operator looks at.
type state struct {
	Stale  string `json:"stale"`
	Counts struct {
		Leaderless      int `json:"leaderless"`
		UnderReplicated int `json:"under_replicated"`
		Moving          int `json:"moving"`
		Problems        int `json:"problems"`
	} `json:"counts"`
	Members  []member `json:"members"`
	Journals []struct {
		Stream   string `json:"stream"`
		Journal  int32  `json:"journal"`
		Replicas []struct {
			Node int32 `json:"node"`
		} `json:"replicas"`
	} `json:"journals"`
}

// member is a node.
type member struct {
	ID      int32  `json:"id"`
	Address string `json:"address"`
	Up      bool   `json:"up"`
	Leaving bool   `json:"leaving"`
}

// run makes one change after the other until ctx ends.
func (o *operator) run(ctx context.Context) {
	changes := []func(context.Context, *state){o.move, o.move, o.transfer, o.transfer, o.replicas, o.rebalance, o.remove}
	for ctx.Err() == nil {
		wait(ctx, time.Duration(500+o.rnd.IntN(2500))*time.Millisecond)
		change := changes[o.rnd.IntN(len(changes))]
		if s := o.look(ctx); s != nil {
			change(ctx, s)
		}
	}
}

// daybook runs a verb of the command on a machine with a node, within a time.
func (o *operator) daybook(ctx context.Context, within time.Duration, machine int, verb string, args ...string) ([]byte, error) {
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m := o.c.lab.Machine(machine)
	return m.Output(short, o.c.binary, append([]string{"cluster", verb, "--data", m.Disk.Data()}, args...)...)
}

// anyMachine draws one with a node.
func (o *operator) anyMachine() int { return 1 + o.rnd.IntN(o.c.nodes) }

// look asks a node how the cluster is; nil if it doesn't know.
func (o *operator) look(ctx context.Context) *state {
	out, _ := o.daybook(ctx, changeWithin, o.anyMachine(), "status", "--all", "--json") // it fails where something is wrong
	var s state
	if json.NewDecoder(bytes.NewReader(out)).Decode(&s) != nil || s.Stale != "" {
		return nil
	}
	return &s
}

// try makes a change through any node, and notes what came of it.
func (o *operator) try(ctx context.Context, within time.Duration, verb string, args ...string) error {
	begun := time.Now()
	via := o.anyMachine()
	out, err := o.daybook(ctx, within, via, verb, args...)
	result := "done"
	if err != nil {
		result = lastLine(out)
	}
	if said := verb + " " + strings.Join(args, " ") + ": " + result; said != o.said { // once, where it is tried again and again
		o.note(fmt.Sprintf("cluster %s (asked on machine %d, for %s)", said, via, time.Since(begun).Round(time.Millisecond)))
		o.said = said
	}
	if err == nil {
		o.done[verb]++
	}
	return err
}

func lastLine(out []byte) string {
	out = bytes.TrimSpace(out)
	return "given up: " + string(out[bytes.LastIndexByte(out, '\n')+1:])
}

// journal draws one of those that there are, and says where it lies.
func (o *operator) journal(s *state) (name string, on []int32, ok bool) {
	if len(s.Journals) == 0 {
		return "", nil, false
	}
	j := s.Journals[o.rnd.IntN(len(s.Journals))]
	for _, r := range j.Replicas {
		on = append(on, r.Node)
	}
	return fmt.Sprintf("%s/%d", j.Stream, j.Journal), on, len(on) > 0
}

func (o *operator) move(ctx context.Context, s *state) {
	name, on, ok := o.journal(s)
	if !ok {
		return
	}
	var to []string
	for _, i := range o.rnd.Perm(len(s.Members)) {
		if m := s.Members[i]; m.Up && !m.Leaving && len(to) < len(on) {
			to = append(to, strconv.Itoa(int(m.ID)))
		}
	}
	if len(to) >= o.fewest {
		_ = o.try(ctx, changeWithin, "move", name, "--to", strings.Join(to, ","))
	}
}

func (o *operator) transfer(ctx context.Context, s *state) {
	if name, on, ok := o.journal(s); ok {
		_ = o.try(ctx, changeWithin, "transfer", name, "--to", strconv.Itoa(int(on[o.rnd.IntN(len(on))])))
	}
}

func (o *operator) replicas(ctx context.Context, s *state) {
	name, _, ok := o.journal(s)
	if !ok || o.c.nodes < o.fewest {
		return
	}
	stream, _, _ := strings.Cut(name, "/")
	count := o.fewest + o.rnd.IntN(o.c.nodes-o.fewest+1)
	_ = o.try(ctx, changeWithin, "replicas", stream, "--count", strconv.Itoa(count))
}

func (o *operator) rebalance(ctx context.Context, _ *state) {
	_ = o.try(ctx, changeWithin, "rebalance")
}

// remove takes a node out and lets its machine join again, with an empty folder and so as another node.
func (o *operator) remove(ctx context.Context, s *state) {
	m := s.Members[o.rnd.IntN(len(s.Members))]
	if n := o.machineOf(m.Address); n > 0 {
		o.c.dismiss(n, true)
		o.removing = &m
		_ = o.try(ctx, emptyWithin, "remove", strconv.Itoa(int(m.ID)))
		o.settle(ctx)
	}
}

// machineOf is the number of the machine with an address; 0 if none has it.
func (o *operator) machineOf(address string) int {
	for n := 1; n <= o.c.nodes; n++ {
		if o.c.address(n, clusterPort) == address {
			return n
		}
	}
	return 0
}

// settle brings a removal to an end of which nobody knows how far it came: a node that is out joins again, one that isn't
// stays.
func (o *operator) settle(ctx context.Context) {
	id, n := o.removing.ID, o.machineOf(o.removing.Address)
	for ; o.removing != nil && ctx.Err() == nil; wait(ctx, 500*time.Millisecond) {
		if o.try(ctx, changeWithin, "remove", strconv.Itoa(int(id)), "--undo") == nil {
			o.c.dismiss(n, false)
			o.removing = nil
			return
		}
		if s := o.look(ctx); s != nil && !slices.ContainsFunc(s.Members, func(m member) bool { return m.ID == id }) {
			err := o.c.replace(ctx, n)
			o.note(fmt.Sprintf("node %d is out, machine %d begins anew: error %v", id, n, err))
			if err == nil {
				o.removing = nil
				o.done["replace"]++
			}
		}
	}
}

// finish brings to an end what faults have kept an operator from, once nothing disturbs any more. The cluster then has to
// come in order by itself, to move a journal that it is asked to, and to be in order again.
func (o *operator) finish(ctx context.Context) error {
	if o.removing != nil {
		o.settle(ctx)
	}
	if err := o.order(ctx); err != nil {
		return err
	}
	for moved := o.done["move"]; o.done["move"] == moved && ctx.Err() == nil; wait(ctx, 500*time.Millisecond) {
		if s := o.look(ctx); s != nil {
			o.move(ctx, s)
		}
	}
	return o.order(ctx)
}

// order waits until every machine's node is in the cluster and nothing is wrong with any journal.
func (o *operator) order(ctx context.Context) error {
	var s *state
	for ; ctx.Err() == nil; wait(ctx, 500*time.Millisecond) {
		if s = o.look(ctx); s == nil {
			continue
		}
		c := s.Counts
		whole := len(s.Members) == o.c.nodes && c.Leaderless+c.UnderReplicated+c.Moving+c.Problems == 0
		for _, m := range s.Members {
			if whole = whole && m.Up && !m.Leaving; m.Leaving { // a step of a removal was on its way when that was undone
				_ = o.try(ctx, changeWithin, "remove", strconv.Itoa(int(m.ID)), "--undo")
			}
		}
		if whole {
			return nil
		}
	}
	return fmt.Errorf("after everything was healed the cluster does not come in order: %w: %+v", ctx.Err(), s)
}
