package kafka_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/internal/services"
)

// TestRandomQuestionsAreAnsweredAsByApacheKafka asks both brokers what chance makes up: appends of producers that repeat, skip and
// use old epochs, transactions of both versions of the protocol that are begun, fenced and ended, reads, and offsets of
// groups. DAYBOOK_SEED runs one seed.
func TestRandomQuestionsAreAnsweredAsByApacheKafka(t *testing.T) {
	apache := services.KafkaForTest(t, services.Options{Args: []string{
		"offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
	}})
	ours := newBroker(t, false)
	first, last := uint64(1), uint64(4*seeds())
	if v := os.Getenv("DAYBOOK_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DAYBOOK_SEED: %v", err)
		}
		first, last = seed, seed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("seed-%d-", seed)
			ask := func(p *peer) { newStranger(p, seed).ask(150) }
			theirs := interview(t, apache.Addr, prefix, ask)
			compareToFirst(t, theirs, interview(t, ours.addr, prefix, ask))
		})
	}
}

// compareToFirst shows the first difference with what was asked before it: all that follows may come from it.
func compareToFirst(t *testing.T, theirs, ours []string) {
	t.Helper()
	if slices.Equal(theirs, ours) {
		return
	}
	at := 0
	for at < min(len(theirs), len(ours)) && theirs[at] == ours[at] {
		at++
	}
	part := func(log []string) string { return strings.Join(log[at:min(at+8, len(log))], "\n  ") }
	t.Errorf("after\n  %s\nApache Kafka answers\n  %s\nand Daybook\n  %s", strings.Join(theirs[max(0, at-400):at], "\n  "), part(theirs), part(ours))
}

// stranger asks a broker what chance makes up. What it asks depends on the seed, and on answers only where both brokers
// have to give the same.
type stranger struct {
	*peer
	chance    *rand.Rand
	topic     string
	group     string
	producers []*sequenced
	txns      []*sequenced
	asked     int
}

// sequenced is a producer with what it would send next.
type sequenced struct {
	txn
	implicit bool // partitions join its transactions by being written to
	next     [2]int32
}

func newStranger(p *peer, seed uint64) *stranger {
	s := &stranger{peer: p, chance: rand.New(rand.NewPCG(seed, 1)), topic: p.topic("t", 2), group: p.name("g")}
	for i := range 2 {
		r := p.initProducer(p.client, fmt.Sprintf("producer %d", i), nil)
		s.producers = append(s.producers, &sequenced{txn: txn{p: p, client: p.client, pid: r.ProducerID, epoch: r.ProducerEpoch}})
	}
	old := p.oldClient()
	for i := range 4 {
		client := old
		if i%2 == 1 {
			client = p.client
		}
		s.txns = append(s.txns, &sequenced{txn: *p.newTxn(client, fmt.Sprintf("x%d", i)), implicit: i%2 == 1})
	}
	return s
}

func (s *stranger) ask(questions int) {
	kinds := []func(){
		s.plain, s.sequence, s.sequence, s.sequence, s.transact, s.transact, s.transact, s.transact, s.end, s.end, s.begin, s.renew,
		s.read, s.read, s.read, s.bounds, s.bounds, s.offsets, s.offsets, s.commit, s.commitInTxn, s.commitInTxn,
	}
	for s.asked = range questions {
		kinds[s.chance.IntN(len(kinds))]()
	}
}

func (s *stranger) title(what string, args ...any) string {
	return fmt.Sprintf("%03d ", s.asked) + fmt.Sprintf(what, args...)
}

// rarely is true once in n times.
func (s *stranger) rarely(n int) bool { return s.chance.IntN(n) == 0 }

func (s *stranger) values() []string {
	all := make([]string, 1+s.chance.IntN(3))
	for i := range all {
		all[i] = fmt.Sprint(s.asked, i)
	}
	return all
}

func (s *stranger) plain() {
	partition := s.chance.Int32N(2)
	b := batch{producer: -1, epoch: -1, sequence: -1, values: s.values(), timestamp: s.chance.Int64N(20)}
	s.append(s.title("plain to %d", partition), s.topic, partition, nil, b.encode())
}

// numbers are an epoch and a sequence, mostly the right ones. Within transactions the sequence is right: there Apache Kafka
// refuses what follows a batch that it has refused.
func (s *stranger) numbers(x *sequenced, partition int32) (epoch int16, sequence int32) {
	epoch, sequence = x.epoch, x.next[partition]
	switch {
	case s.rarely(12):
		epoch = max(0, epoch-1)
	case x.id != "":
	case s.rarely(12):
		epoch++
	case s.rarely(4):
		sequence = max(0, sequence-s.chance.Int32N(8))
	case s.rarely(8):
		sequence += 1 + s.chance.Int32N(3)
	case s.rarely(8):
		sequence = 0
	}
	return epoch, sequence
}

// write appends a batch of a producer and moves its sequence on if it was taken.
func (s *stranger) write(what string, x *sequenced, attributes int16, id *string) {
	partition := s.chance.Int32N(2)
	epoch, sequence := s.numbers(x, partition)
	values := s.values()
	b := batch{attributes: attributes, producer: x.pid, epoch: epoch, sequence: sequence, values: values, timestamp: s.chance.Int64N(20)}
	title := s.title("%s to %d, epoch %+d, sequence %d", what, partition, epoch-x.epoch, sequence)
	resp := s.appendOn(x.client, title, s.topic, partition, id, b.encode())
	if resp.Topics[0].Partitions[0].ErrorCode != 0 {
		return
	}
	if epoch > x.epoch {
		x.epoch, x.next = epoch, [2]int32{}
	}
	x.next[partition] = max(x.next[partition], sequence+int32(len(values)))
}

func (s *stranger) sequence() {
	i := s.chance.IntN(len(s.producers))
	s.write(fmt.Sprintf("producer %d", i), s.producers[i], 0, nil)
}

// someTxn is one of the transactional producers, and its name.
func (s *stranger) someTxn() (string, *sequenced) {
	i := s.chance.IntN(len(s.txns))
	return fmt.Sprintf("txn %d", i), s.txns[i]
}

func (s *stranger) transact() {
	name, x := s.someTxn()
	if !x.implicit {
		x.add(s.title("%s adds", name), s.topic, 0)
		x.add(s.title("%s adds", name), s.topic, 1)
	}
	s.write(name, x, 16, &x.id)
}

func (s *stranger) end() {
	name, x := s.someTxn()
	commit, who := s.rarely(2), s.maybeFenced(x)
	r := who.end(s.title("%s ends, commit %v, epoch %+d", name, commit, who.epoch-x.epoch), commit, "ProducerEpoch")
	s.settle(x)
	if r.ErrorCode == 0 && x.implicit {
		x.goOn(r.ProducerID, r.ProducerEpoch)
	}
}

// maybeFenced is the producer, rarely with the epoch before its own.
func (s *stranger) maybeFenced(x *sequenced) *txn {
	if s.rarely(10) {
		return x.at(x.epoch - 1)
	}
	return &x.txn
}

// goOn has the producer use another epoch, from whose beginning it counts anew.
func (x *sequenced) goOn(pid int64, epoch int16) {
	if pid != x.pid || epoch != x.epoch {
		x.pid, x.epoch, x.next = pid, epoch, [2]int32{}
	}
}

// settle waits until the markers of the last transaction are written.
func (s *stranger) settle(x *sequenced) {
	eventually(s.t, "the markers of "+x.id, func() error {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{x.id}
		resp, err := req.RequestWith(s.t.Context(), s.client)
		if err != nil {
			return err
		}
		state := resp.TransactionStates[0]
		if err := kerr.ErrorForCode(state.ErrorCode); err != nil {
			return err
		}
		if slices.Contains([]string{"PrepareCommit", "PrepareAbort", "PrepareEpochFence"}, state.State) {
			return fmt.Errorf("it is in state %s", state.State)
		}
		return nil
	})
}

// begin is a producer's start: it fences the former, and aborts what that left open.
func (s *stranger) begin() {
	name, x := s.someTxn()
	s.init(x, s.title("%s begins anew", name))
}

func (s *stranger) init(x *sequenced, title string, change ...func(*kmsg.InitProducerIDRequest)) {
	r := s.initProducer(x.client, title, &x.id, change...)
	s.settle(x)
	if r.ErrorCode == 0 {
		x.goOn(r.ProducerID, r.ProducerEpoch)
	}
}

// renew asks for the next epoch of a producer that goes on. Not with an epoch that is fenced: before Apache Kafka refuses it, it
// aborts the transaction of whoever fenced it.
func (s *stranger) renew() {
	name, x := s.someTxn()
	s.init(x, s.title("%s goes on", name), func(r *kmsg.InitProducerIDRequest) { r.ProducerID, r.ProducerEpoch = x.pid, x.epoch })
}

func (s *stranger) read() {
	partition, from, isolation := s.chance.Int32N(2), s.chance.Int64N(60)-1, int8(s.chance.IntN(2))
	req := s.fetchRequest(s.topic, partition, from, 1<<20)
	req.IsolationLevel = isolation
	// Apache Kafka tells of aborted transactions behind what it returns.
	ask[*kmsg.FetchResponse](s.peer, s.title("read %d from %d, isolation %d", partition, from, isolation), req, "AbortedTransactions")
}

func (s *stranger) bounds() {
	partition, isolation := s.chance.Int32N(2), int8(s.chance.IntN(2))
	at := s.chance.Int64N(25) - 3
	s.offsetAt(s.title("offset of %d at %d, isolation %d", partition, at, isolation), s.topic, partition, at, isolation, "Timestamp") // of a marker it is now
}

// offsets reads what a group has committed.
func (s *stranger) offsets() {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = s.group, s.rarely(2)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = s.group
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.TopicID, gt.Partitions = s.topic, s.ids[s.topic], []int32{0, 1}
	g.Topics = append(g.Topics, gt)
	req.Groups = append(req.Groups, g)
	ask[*kmsg.OffsetFetchResponse](s.peer, s.title("offsets of the group, stable %v", req.RequireStable), req)
}

func (s *stranger) commit() {
	partition := s.chance.Int32N(2)
	s.commitOffset(s.title("commit of %d", partition), s.group, "", -1, s.topic, partition, s.chance.Int64N(100), "")
}

// commitInTxn commits an offset with a transaction.
func (s *stranger) commitInTxn() {
	name, x := s.someTxn()
	if !x.implicit { // else Apache Kafka says now this and now that
		x.addGroup(s.title("%s adds the group", name), s.group)
	}
	who, partition := s.maybeFenced(x), s.chance.Int32N(2)
	title := s.title("%s commits an offset of %d, epoch %+d", name, partition, who.epoch-x.epoch)
	who.commitOffset(title, s.group, s.topic, partition, s.chance.Int64N(100), "Topic") // later versions have an id in its place
}
