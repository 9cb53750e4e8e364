package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
)

// maxFetchBytes bounds one fetch answer, whatever the client asks for; one batch
// may exceed it.
const maxFetchBytes = 64 << 20

// fetched is what one partition gives to a fetch.
type fetched struct {
	index     int32
	err       error
	data      cluster.Fetched
	diverging *divergence
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
	if r.session != 0 && r.sessionEpoch > 0 {
		// Never given out by this server; the client starts without one.
		return w.fetchError(cl.header, kerr.FetchSessionIDNotFound.Code)
	}
	results, err := c.server.gather(cl.ctx, &r)
	if err != nil {
		return err
	}
	defer release(results)
	return w.fetchAnswer(cl.header, &r, results)
}

// gather reads what the request asks for, waiting as it allows. It watches the
// journals only if the first look was not enough, and then looks again at once:
// no change falls between.
func (s *Server) gather(ctx context.Context, r *fetchRequest) ([][]fetched, error) {
	partitions, all := s.fetchPartitions(r)
	results, enough := s.look(r, partitions)
	if enough || r.maxWait <= 0 {
		return results, nil
	}
	watch := cluster.NewWatch(all)
	defer watch.Close()
	deadline := time.NewTimer(r.maxWait)
	defer deadline.Stop()
	for last := false; ; {
		release(results)
		if results, enough = s.look(r, partitions); enough || last {
			return results, nil
		}
		select {
		case <-watch.Changed():
		case <-deadline.C:
			last = true
		case <-ctx.Done():
			release(results)
			return nil, ctx.Err()
		}
	}
}

// fetchPartitions finds the partitions: in the request's order, where those that
// do not exist are nil, and the others in one list.
func (s *Server) fetchPartitions(r *fetchRequest) (ordered [][]*cluster.Partition, all []*cluster.Partition) {
	ordered = make([][]*cluster.Partition, len(r.topics))
	for i, t := range r.topics {
		ordered[i] = make([]*cluster.Partition, len(t.partitions))
		for j, fp := range t.partitions {
			if p, err := s.node.Partition(t.name, fp.index); err == nil {
				ordered[i][j] = p
				all = append(all, p)
			}
		}
	}
	return ordered, all
}

// look reads every partition once. enough means that the answer need not wait.
func (s *Server) look(r *fetchRequest, partitions [][]*cluster.Partition) (results [][]fetched, enough bool) {
	left := min(r.maxBytes, maxFetchBytes)
	total := 0
	results = make([][]fetched, len(r.topics))
	for i, t := range r.topics {
		results[i] = make([]fetched, len(t.partitions))
		for j, fp := range t.partitions {
			f := &results[i][j]
			f.index = fp.index
			if partitions[i][j] == nil {
				f.err = cluster.ErrUnknownStream
			} else {
				s.readPartition(f, partitions[i][j], fp, r.readCommitted, min(fp.maxBytes, left), total == 0)
			}
			total += f.data.Bytes
			if left -= f.data.Bytes; f.data.Full && fp.maxBytes >= left {
				left = 0 // reading more only to find that it does not fit costs too much
			}
			enough = enough || f.err != nil || f.diverging != nil
		}
	}
	return results, enough || total >= r.minBytes
}

// readPartition reads one partition. Only the first that has anything may exceed
// its limit, by one batch: else a batch larger than the limits could never be
// read.
func (s *Server) readPartition(f *fetched, p *cluster.Partition, fp fetchPartition, committed bool, limit int, first bool) {
	if f.err = checkEpoch(p, fp.leaderEpoch); f.err != nil {
		return
	}
	if fp.lastEpoch >= 0 {
		epoch, end, err := p.EpochEnd(fp.lastEpoch)
		if err == nil && (end < fp.offset || epoch < fp.lastEpoch) {
			f.diverging = &divergence{epoch, end}
			f.data.Bounds, f.err = p.Bounds()
			return
		}
	}
	f.data, f.err = p.Read(cluster.ReadRequest{
		Offset: fp.offset, MaxBytes: limit, WholeBatch: first, Committed: committed,
	})
}

// checkEpoch compares the leader epoch a client knows with the partition's.
func checkEpoch(p *cluster.Partition, known int32) error {
	switch current := p.LeaderEpoch(); {
	case known < 0 || known == current:
		return nil
	case known < current:
		return kerr.FencedLeaderEpoch
	}
	return kerr.UnknownLeaderEpoch
}

func release(results [][]fetched) {
	for i := range results {
		for j := range results[i] {
			results[i][j].data.Release()
		}
	}
}
