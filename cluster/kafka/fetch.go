package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
)

// maxFetchBytes bounds one fetch answer, whatever the client asks for; one batch
// may exceed it.
const maxFetchBytes = 64 << 20

// fetched is what one partition gives to a fetch.
type fetched struct {
	index     int32
	omit      bool // the client's session knows all of it
	err       error
	data      cluster.Fetched
	diverging *divergence
	leader    leader // noLeader unless the client has to go there
	readFrom  int32  // the node to read from instead; 0 is this one
}

// divergence tells a consumer where its view of the log parts from the log.
type divergence struct {
	epoch int32
	end   int64
}

// fetch answers a Fetch request: at once if there is an error, minBytes or no
// time to wait; else when enough has come or the time is over. Between two looks
// it sleeps until a journal of the request changes.
func (c *conn) fetch(cl *call, w *answerWriter, body []byte) error {
	r, err := decodeFetch(cl.version, body)
	if err != nil {
		return fmt.Errorf("%w: Fetch version %d", err, cl.version)
	}
	r.near = c.near(r.rack)
	plan, err := c.server.sessions.begin(&r)
	if err != nil {
		return w.fetchError(cl.header, errorCode(err))
	}
	results, err := c.server.gather(cl, &r, plan.topics)
	if err != nil {
		return err
	}
	defer release(results)
	session, err := c.server.sessions.finish(&plan, results)
	if err != nil {
		return w.fetchError(cl.header, errorCode(err))
	}
	return w.fetchAnswer(cl.header, session, plan.topics, results)
}

// gather reads what the request asks for, waiting as it allows. It watches the
// journals only if the first look was not enough, and then looks again at once:
// no change falls between.
func (s *Server) gather(cl *call, r *fetchRequest, topics []fetchTopic) ([][]fetched, error) {
	targets, all := s.fetchTargets(cl, r.byID, topics)
	results, enough, _ := s.look(r, targets)
	if enough || r.maxWait <= 0 {
		return results, nil
	}
	watch := cluster.NewWatch(all)
	defer watch.Close()
	deadline := time.NewTimer(r.maxWait)
	defer deadline.Stop()
	for last, waits := false, false; ; {
		release(results)
		var lost bool
		if results, enough, lost = s.look(r, targets); enough || last {
			return results, nil
		}
		if lost && !waits {
			waits = true
			deadline.Reset(min(r.maxWait, s.opts.LeaderWait))
		}
		select {
		case <-watch.Changed():
		case <-deadline.C:
			last = true
		case <-cl.ctx.Done():
			release(results)
			return nil, cl.ctx.Err()
		}
	}
}

// fetchTarget is one partition of a fetch: what is asked of it, and where it is or
// why it cannot be read.
type fetchTarget struct {
	fetchPartition
	partition *cluster.Partition
	err       error
}

// fetchTargets finds the partitions: in the order of the topics, and those that
// exist in one list.
func (s *Server) fetchTargets(cl *call, byID bool, topics []fetchTopic) (targets [][]fetchTarget, all []*cluster.Partition) {
	targets = make([][]fetchTarget, len(topics))
	for i, t := range topics {
		targets[i] = make([]fetchTarget, len(t.partitions))
		for j, fp := range t.partitions {
			target := &targets[i][j]
			target.fetchPartition = fp
			if target.partition, target.err = s.fetchTarget(cl, byID, t, fp.index); target.err == nil {
				all = append(all, target.partition)
			}
		}
	}
	return targets, all
}

func (s *Server) fetchTarget(cl *call, byID bool, t fetchTopic, index int32) (*cluster.Partition, error) {
	if byID && t.name == "" {
		return nil, kerr.UnknownTopicID
	}
	if err := cl.topic(kmsg.ACLOperationRead, t.name); err != nil {
		return nil, err
	}
	p, err := s.node.Partition(t.name, index)
	if err == nil && byID && p.Key().Stream != t.id {
		return nil, kerr.InconsistentTopicID // the session's topic was deleted and made anew
	}
	return p, err
}

// look reads every partition once. enough means that the answer need not wait; lost that some partition has no leader that
// is known, which the client can't do anything about but ask again.
func (s *Server) look(r *fetchRequest, targets [][]fetchTarget) (results [][]fetched, enough, lost bool) {
	left := min(r.maxBytes, maxFetchBytes)
	total := 0
	results = make([][]fetched, len(targets))
	for i, topic := range targets {
		results[i] = make([]fetched, len(topic))
		for j, target := range topic {
			f := &results[i][j]
			f.index, f.leader = target.index, noLeader
			if f.err = target.err; f.err == nil {
				s.readPartition(f, target, r, min(target.maxBytes, left), total == 0)
				f.leader = s.leaderBeside(target.partition, f.err)
			}
			orphaned := leaderless(target.partition, f.err, f.leader)
			lost = lost || orphaned
			if !f.data.Idle {
				total += f.data.Bytes
			}
			if left -= f.data.Bytes; f.data.Full && target.maxBytes >= left {
				left = 0 // reading more only to find that it does not fit costs too much
			}
			enough = enough || f.err != nil && !orphaned || f.diverging != nil || f.readFrom > 0
		}
	}
	return results, enough || total >= r.minBytes, lost
}

// readPartition reads one partition. Only the first that has anything may exceed
// its limit, by one batch: else a batch larger than the limits could never be
// read.
func (s *Server) readPartition(f *fetched, t fetchTarget, r *fetchRequest, limit int, first bool) {
	p := t.partition
	read := cluster.ReadRequest{Offset: t.offset, MaxBytes: limit, WholeBatch: first, Committed: r.readCommitted}
	if f.err = s.lead(p, t.leaderEpoch); f.err != nil {
		if s.mayFollow(p, r, f.err) {
			f.follow(p, read)
		}
		return
	}
	if f.diverging, f.data.Bounds, f.err = diverges(p, t); f.diverging != nil || f.err != nil {
		return
	}
	if id := s.nearer(p, r); id > 0 {
		// The leader knows best whether there is such an offset: it only looks.
		read.MaxBytes, read.WholeBatch, f.readFrom = 0, false, id
	}
	if f.data, f.err = s.read(p, read); f.err != nil {
		f.readFrom = 0
	}
}

// diverges says where a consumer's view of the log parts from it, nil if it does not.
func diverges(p *cluster.Partition, t fetchTarget) (d *divergence, b cluster.Bounds, err error) {
	if t.lastEpoch < 0 {
		return nil, b, nil
	}
	last := termOf(p, t.lastEpoch)
	apart := func() bool {
		epoch, end, err := p.EpochEnd(last)
		d = &divergence{epoch, end}
		return err == nil && (end < t.offset || epoch < last)
	}
	if !apart() {
		return nil, b, nil
	}
	// Only who leads now knows: a former leader may lack what the consumer has read.
	if b, err = p.BoundsSince(time.Now()); err != nil || !apart() {
		return nil, b, err
	}
	return d, b, nil
}

func release(results [][]fetched) {
	for i := range results {
		for j := range results[i] {
			results[i][j].data.Release()
		}
	}
}
