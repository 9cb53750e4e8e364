package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/storage"
)

// produceCall is a produce request whose batches are on their way into their
// journals.
type produceCall struct {
	header
	acks     int16
	deadline time.Time // when the client's patience is over
	server   *Server
	line     *line // to ring when it is stored
	stored   atomic.Bool

	mu      sync.Mutex
	waiting int  // batches without a result
	moved   bool // some batch has to go to another node
	orphans []orphan
	until   time.Time // for how long their leaders are waited for
	topics  []kmsg.ProduceResponseTopic

	// What topics is cut from where one batch is all: most requests of small ones.
	oneTopic     [1]kmsg.ProduceResponseTopic
	onePartition [1]kmsg.ProduceResponseTopicPartition
}

// startProduce hands the request's batches to their journals, in order, and does
// not wait for the disk. It waits for room in a journal's queue.
func (c *conn) startProduce(ctx context.Context, req *request) (*produceCall, error) {
	r, err := decodeProduce(req.version, req.body, c.topic)
	if err != nil {
		return nil, fmt.Errorf("%w: Produce version %d", err, req.version)
	}
	p := &produceCall{
		header:   req.header,
		acks:     r.acks,
		deadline: time.Now().Add(max(time.Duration(r.timeoutMillis)*time.Millisecond, time.Second)),
		server:   c.server,
		line:     c.line,
		waiting:  1, // until all are started
	}
	if p.topics = p.oneTopic[:]; len(r.topics) != 1 {
		p.topics = make([]kmsg.ProduceResponseTopic, len(r.topics))
	}
	for i, t := range r.topics {
		if req.version >= 13 {
			r.topics[i].name = c.server.topicName(t.id)
		}
		p.topics[i] = kmsg.NewProduceResponseTopic()
		p.topics[i].Topic, p.topics[i].TopicID = r.topics[i].name, t.id
		if p.topics[i].Partitions = p.onePartition[:]; len(r.topics) != 1 || len(t.partitions) != 1 {
			p.topics[i].Partitions = make([]kmsg.ProduceResponseTopicPartition, len(t.partitions))
		}
		c.topic = r.topics[i].name
	}
	cl := &call{ctx: ctx, conn: c, header: req.header}
	c.server.judgeTopics(cl, &r)
	joined := c.server.joinTxn(cl, &r)
	for i, t := range r.topics {
		for j, part := range t.partitions {
			answer := &p.topics[i].Partitions[j]
			*answer = kmsg.NewProduceResponseTopicPartition()
			answer.Partition = part.index
			answer.ErrorCode = kerr.RequestTimedOut.Code // what it is until it is known
			answer.BaseOffset = -1
			p.expect()
			c.produceOne(ctx, req, batchRequest{&r, t, part, joined}, p, answer)
		}
	}
	p.finish()
	return p, nil
}

// batchRequest is one batch of a produce request.
type batchRequest struct {
	*produceRequest
	topic produceTopic
	producePartition
	joined error // of the request's partitions into their transaction
}

// produceOne checks one batch and appends it. p gets its result, for answer, once,
// now or later. The batch's place in its journal is settled when produceOne returns.
func (c *conn) produceOne(ctx context.Context, req *request, b batchRequest, p *produceCall, answer *kmsg.ProduceResponseTopicPartition) {
	var partition *cluster.Partition
	refuse := func(err error) {
		c.server.counts.batch(0, err)
		p.settle(answer, partition, 0, cluster.Appended{Err: err, LogStart: startBeside(partition, err)})
	}
	partition, h, appendTime, err := c.server.admitBatch(req.version, b)
	if err != nil {
		refuse(err)
		return
	}
	if h.Transactional() && b.denied != nil {
		refuse(b.denied)
		return
	}
	if h.Transactional() && b.joined != nil {
		partition = nil // the log was not asked
		refuse(uncoordinated(b.joined))
		return
	}
	revision, err := c.server.txns.admit(ctx, b.transactionalID, partition.Key(), h)
	if err != nil {
		partition = nil // the log was not asked
		refuse(uncoordinated(err))
		return
	}
	req.hold()                          // the journal writes out of the frame
	records, to := h.Records, partition // the closure keeps these, and neither all of h nor a variable that changes
	txn := cluster.Txn{Revision: revision, FromZero: h.Transactional() && countsAnew(req.version)}
	err = to.AppendTxn(ctx, b.records, txn, func(a cluster.Appended) {
		req.drop()
		c.server.counts.batch(records, a.Err)
		if a.Err != nil {
			a.LogStart = startBeside(to, a.Err)
		}
		p.settle(answer, to, appendTime, a)
	})
	if err != nil { // not queued: there will be no result
		req.drop()
		refuse(err)
	}
}

// uncoordinated gives what the coordinator would have a client do again an error that
// producers do again: they know the coordinator's own only in its answers.
func uncoordinated(err error) error {
	switch coordinatorCode(err) {
	case kerr.ConcurrentTransactions.Code, kerr.NotCoordinator.Code, kerr.CoordinatorNotAvailable.Code, kerr.CoordinatorLoadInProgress.Code:
		return fmt.Errorf("%w: %w", kerr.NotEnoughReplicas, err)
	}
	return err
}

// expect counts one more batch that will be settled.
func (p *produceCall) expect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
}

// settle puts a batch's result into its answer; partition is nil if there is none.
func (p *produceCall) settle(answer *kmsg.ProduceResponseTopicPartition, partition *cluster.Partition, appendTime int64, a cluster.Appended) {
	now := noLeader
	if a.Err != nil {
		now = p.server.leaderBeside(partition, a.Err)
	}
	if now != noLeader {
		p.tell(answer, now)
	}
	p.mu.Lock()
	if leaderless(partition, a.Err, now) {
		if len(p.orphans) == 0 {
			p.until = time.Now().Add(min(p.server.opts.LeaderWait, time.Until(p.deadline)))
		}
		p.orphans = append(p.orphans, orphan{answer, partition})
	}
	answer.ErrorCode, answer.ErrorMessage = errorCode(a.Err), errorText(a.Err)
	answer.LogStartOffset = a.LogStart
	if a.Err == nil {
		answer.BaseOffset = a.BaseOffset
	}
	if appendTime > 0 {
		answer.LogAppendTime = appendTime
	}
	p.mu.Unlock()
	p.finish()
}

// tell says in a batch's answer who leads its partition.
func (p *produceCall) tell(answer *kmsg.ProduceResponseTopicPartition, now leader) {
	if p.version < 10 {
		return // the client can only ask for the metadata
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = true
	answer.CurrentLeader.LeaderID, answer.CurrentLeader.LeaderEpoch = now.id, now.epoch
}

// unled are the batches whose leaders are to be waited for, and until when. While batches are without a result there are
// none: the client's patience is over.
func (p *produceCall) unled() (orphans []orphan, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting > 0 {
		return nil, time.Time{}
	}
	return p.orphans, p.until
}

// startBeside is the start of the log that Apache Kafka tells beside an error: where the
// batch got as far as being compared with the log. A producer sees from it whether
// retention removed what it had sent.
func startBeside(p *cluster.Partition, err error) int64 {
	switch errorCode(err) {
	case kerr.UnknownTopicOrPartition.Code, kerr.NotLeaderForPartition.Code, kerr.MessageTooLarge.Code, kerr.CorruptMessage.Code,
		kerr.KafkaStorageError.Code, kerr.TransactionalIDAuthorizationFailed.Code:
		return -1
	}
	if p == nil {
		return -1
	}
	bounds, err := p.Bounds()
	if err != nil {
		return -1
	}
	return bounds.Start
}

// finish counts one result, or the start of all, off.
func (p *produceCall) finish() {
	p.mu.Lock()
	p.waiting--
	stored := p.waiting == 0
	p.mu.Unlock()
	if stored {
		p.stored.Store(true)
		p.line.ring()
	}
}

// admitBatch finds the partition and judges the batch by the stream's rules; the
// batch itself, its checksum included, is checked by Append. appendTime is set if
// the stream stamps its batches.
func (s *Server) admitBatch(version int16, b batchRequest) (p *cluster.Partition, h storage.Header, appendTime int64, err error) {
	switch {
	case version < 3:
		return nil, h, 0, fmt.Errorf("%w: message formats 0 and 1 are not stored", kerr.UnsupportedVersion)
	case b.acks < -1 || b.acks > 1:
		return nil, h, 0, kerr.InvalidRequiredAcks
	}
	if p, err = s.producePartition(version, b); err != nil {
		return nil, h, 0, err
	}
	policy := p.Policy()
	if len(b.records) > policy.MaxBatchBytes {
		return nil, h, 0, fmt.Errorf("%w: batch of %d bytes, stream %s takes %d", kerr.MessageTooLarge, len(b.records), b.topic.name, policy.MaxBatchBytes)
	}
	if h, err = storage.ParseHeader(b.records); err != nil {
		return nil, h, 0, err
	}
	if h.Transactional() && b.transactionalID == nil {
		return nil, h, 0, fmt.Errorf("%w: a batch of a transaction in a request of none", kerr.TransactionalIDAuthorizationFailed)
	}
	if h.Magic != 2 {
		return nil, h, 0, fmt.Errorf("%w: magic %d, only record batch version 2 is stored", storage.ErrInvalidBatch, h.Magic)
	}
	if h.Size() != len(b.records) {
		return nil, h, 0, fmt.Errorf("%w: %d bytes where the one batch of a partition has %d", storage.ErrInvalidBatch, len(b.records), h.Size())
	}
	if h.BaseOffset != 0 {
		return nil, h, 0, fmt.Errorf("%w: base offset %d", storage.ErrInvalidBatch, h.BaseOffset)
	}
	earliest, err := s.settleTimes(&h, b.records)
	if err != nil {
		return p, h, 0, err
	}
	now := time.Now()
	if policy.AppendTime {
		// Stamping computes the checksum anew: the batch must be whole before.
		if _, err := storage.CheckBatch(b.records); err != nil {
			return nil, h, 0, err
		}
		storage.SetLogAppendTime(b.records, now.UnixMilli())
		return p, h, now.UnixMilli(), nil
	}
	return p, h, 0, checkTimes(earliest, h.MaxTimestamp, policy, now)
}

// judgeTopics finds the topics that the client may not write to, and whether it may
// use the transactional id.
func (s *Server) judgeTopics(c *call, r *produceRequest) {
	for i := range r.topics {
		r.topics[i].denied = c.topic(kmsg.ACLOperationWrite, r.topics[i].name)
	}
	if r.transactionalID != nil {
		r.denied = c.txn(kmsg.ACLOperationWrite, *r.transactionalID)
	}
}

func (s *Server) producePartition(version int16, b batchRequest) (*cluster.Partition, error) {
	if version >= 13 && b.topic.name == "" {
		return nil, kerr.UnknownTopicID
	}
	if b.topic.denied != nil {
		return nil, b.topic.denied
	}
	if internalTopic(b.topic.name) {
		return nil, kerr.InvalidTopicException
	}
	return s.node.Partition(b.topic.name, b.index)
}

var errAckless = errors.New("a batch sent with acks=0 was refused")

// finishProduce answers a request whose records are stored, as its stream promises, or
// whose client's patience is over: what is not stored yet may be later, and the client
// asks again. acks asks for less than that only in being 0: no answer.
func (c *conn) finishProduce(ctx context.Context, w *answerWriter, p *produceCall) error {
	if err := c.awaitLeaders(ctx, w, p); err != nil {
		return err
	}
	topics, moved := p.results()
	if p.acks == 0 {
		// There is no other way to tell the client than to end its connection.
		for _, t := range topics {
			for _, part := range t.Partitions {
				if part.ErrorCode != 0 {
					return fmt.Errorf("%w: %s[%d]: %w", errAckless, t.Topic, part.Partition, kerr.ErrorForCode(part.ErrorCode))
				}
			}
		}
		return nil
	}
	w.produced = kmsg.NewProduceResponse()
	w.produced.Version, w.produced.Topics = p.version, topics
	if moved {
		for _, b := range c.brokers() {
			w.produced.Brokers = append(w.produced.Brokers, kmsg.ProduceResponseBroker{NodeID: b.id, Host: b.host, Port: b.port, Rack: b.rack})
		}
	}
	err := w.message(p.header, &w.produced)
	w.produced.Topics = nil // it may be long until the next one
	return err
}

// results returns what there is by now, and whether a part has to go elsewhere. Unless it is all it is a copy: a batch that
// is late still gets its result, which nobody may wait for to be written to a client.
func (p *produceCall) results() (answers []kmsg.ProduceResponseTopic, moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 {
		return p.topics, p.moved
	}
	topics := slices.Clone(p.topics)
	for i := range topics {
		topics[i].Partitions = slices.Clone(topics[i].Partitions)
	}
	return topics, p.moved
}
