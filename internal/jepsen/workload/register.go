package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// once is an admin client that does not ask twice: an answer to a second try would be taken for that to the first.
func (w *Workload) once(ctx context.Context) (*kadm.Client, error) {
	c, err := w.client(ctx, kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(c), nil
}

// register commits and fetches the offset of a group that has no members, which all committers share.
func (w *Workload) register(ctx context.Context, l *lot) error {
	a, err := w.once(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer a.Close()
	session := w.session(l)
	for w.pause(ctx, l) {
		name := fmt.Sprintf("%s-%d", registers, l.IntN(2))
		at := history.Position{Partition: history.NewPartition(plain, 0), Offset: history.Nowhere}
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Patience)
		if l.IntN(2) == 0 {
			at.Offset = w.rec.Value()
			op := w.rec.Begin(history.Op{Session: session, Kind: history.Commit, Group: name, Positions: []history.Position{at}})
			ended(&op, a.CommitAllOffsets(short, name, kadm.OffsetsFromRecords(kgo.Record{Topic: plain, Offset: at.Offset - 1})))
			w.rec.Done(op)
		} else {
			op := w.rec.Begin(history.Op{Session: session, Kind: history.Fetch, Group: name})
			fetched, err := a.FetchOffsets(short, name)
			if err == nil {
				err = fetched.Error()
			}
			if o, ok := fetched.Lookup(plain, 0); ok && err == nil {
				at.Offset = o.At
			}
			op.Positions = []history.Position{at}
			ended(&op, err)
			w.rec.Done(op)
		}
		cancel()
	}
	return nil
}

// make makes and removes streams that all makers share.
func (w *Workload) make(ctx context.Context, l *lot) error {
	a, err := w.once(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer a.Close()
	session := w.session(l)
	for w.pause(ctx, l) {
		if l.IntN(5) > 0 {
			continue // a journal's files are dear
		}
		stream := w.fleeting(l.IntN(2))
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Patience)
		if l.IntN(2) == 0 {
			op := w.rec.Begin(history.Op{Session: session, Kind: history.Create, Stream: stream})
			made, err := a.CreateTopic(short, 1, w.o.Replicas, nil, stream)
			w.judgeStream(&op, errors.Join(err, made.Err), kerr.TopicAlreadyExists)
			w.rec.Done(op)
		} else {
			op := w.rec.Begin(history.Op{Session: session, Kind: history.Delete, Stream: stream})
			gone, err := a.DeleteTopic(short, stream)
			w.judgeStream(&op, errors.Join(err, gone.Err), kerr.UnknownTopicOrPartition)
			w.rec.Done(op)
		}
		cancel()
	}
	return nil
}

// judgeStream fills in how an operation ended that one error says has found things as it would have left them. A stream
// of which nobody knows whether it is there is left to itself: the next have another name.
func (w *Workload) judgeStream(op *history.Op, err, idle error) {
	ended(op, err)
	var unreachable *net.OpError
	switch {
	case errors.Is(err, idle):
		op.Outcome = history.Fail
	case errors.Is(err, kerr.NotController), errors.As(err, &unreachable) && unreachable.Op == "dial":
		op.Outcome = history.Nothing
	case err != nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.generation++
	}
}

// fleeting is the name of one of the streams that come and go.
func (w *Workload) fleeting(i int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%s-%d-%d", fleeting, w.generation, i)
}

// survey asks the leaders for the ends of all partitions.
func (w *Workload) survey(ctx context.Context, l *lot) error {
	c, err := w.client(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer c.Close()
	session := w.session(l)
	for w.pause(ctx, l) {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Patience)
		_, _ = w.ends(short, c, session, false) // in the history
		cancel()
	}
	return nil
}

// ends takes down the ends of all partitions. The committed ones, which no operation is for, are the last stable offsets.
func (w *Workload) ends(ctx context.Context, c *kgo.Client, session string, committed bool) (map[history.Partition]int64, error) {
	a := kadm.NewClient(c)
	list := a.ListEndOffsets
	if committed {
		list = a.ListCommittedOffsets
	}
	op := history.Op{Session: session, Kind: history.End}
	if !committed {
		op = w.rec.Begin(op)
	}
	offsets, err := list(ctx, plain, ledger)
	ends := map[history.Partition]int64{}
	offsets.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s/%d: %w", o.Topic, o.Partition, o.Err))
			return
		}
		p := history.NewPartition(o.Topic, o.Partition)
		ends[p] = o.Offset
		op.Positions = append(op.Positions, history.Position{Partition: p, Offset: o.Offset})
	})
	if err == nil && len(ends) != int(2*w.o.Partitions) {
		err = fmt.Errorf("%d partitions have an end, of %d", len(ends), 2*w.o.Partitions)
	}
	if !committed {
		ended(&op, nil) // what was answered holds, though others were not
		if err != nil {
			op.Error = err.Error()
		}
		w.rec.Done(op)
	}
	return ends, err
}

// whole is how long a scan of everything may take once nothing disturbs it.
const whole = time.Minute
