package pipeline_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

// teammate is one of several workers of the same pipeline.
type teammate struct {
	*pipeline.Worker
	wire   *cable
	cancel context.CancelFunc
	ended  chan error
}

func startTeammate(t *testing.T, c brokers, f *pipeline.File) *teammate {
	t.Helper()
	m := &teammate{wire: &cable{}, ended: make(chan error, 1)}
	j := open(t, c, m.wire.plug, remote)
	m.Worker = worker(t, f, j, pipeline.WorkerOptions{Grace: 100 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	go func() { m.ended <- m.Run(ctx) }()
	return m
}

func (m *teammate) state() pipeline.State { return m.Status().Sources[0].State }

// TestASourceMovesToAnotherWorker has three workers of one pipeline. Only one at a time runs the source; when it ends,
// and when it is cut off from the journal, another goes on where it was.
func TestASourceMovesToAnotherWorker(t *testing.T) {
	t.Parallel()
	kafka := services.KafkaForTest(t, services.Options{Args: []string{"group.initial.rebalance.delay.ms=0"}})
	c := realKafka{kafka.Addr}
	const total = 4000
	var running, most, emitted atomic.Int64
	file := func() *pipeline.File {
		return sourceFile(script{run: func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			p := &paced{reached: make(chan struct{})}
			if err := counting(total, &emitted)(ctx, from, p.around(out)); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}}, partitions(3))
	}
	team := []*teammate{startTeammate(t, c, file()), startTeammate(t, c, file()), startTeammate(t, c, file())}
	count := func(s pipeline.State) (n int) {
		for _, m := range team {
			if m.state() == s {
				n++
			}
		}
		return n
	}
	leader := func() int {
		for i, m := range team {
			if m.state() == pipeline.StateRunning {
				return i
			}
		}
		return -1
	}
	take := func() *teammate {
		i := leader()
		if i < 0 {
			t.Fatal("nobody runs the source")
		}
		m := team[i]
		team = append(team[:i:i], team[i+1:]...)
		return m
	}
	eventually(t, "one worker to run the source and two to stand by", func() bool {
		return count(pipeline.StateRunning) == 1 && count(pipeline.StateStandby) == 2 && emitted.Load() > 100
	})
	for _, m := range team {
		if s := m.Status().Sources[0]; s.State == pipeline.StateStandby && s.Waits == "" {
			t.Error("a worker stands by and does not say for what")
		}
	}
	first := take()
	first.cancel()
	if err := <-first.ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	at := emitted.Load()
	eventually(t, "another worker to go on", func() bool {
		return count(pipeline.StateRunning) == 1 && count(pipeline.StateStandby) == 1 && emitted.Load() > at+100
	})
	second := take() // it is cut off, and does not know that it is over
	second.wire.sever()
	eventually(t, "the last worker to run the source to its end", func() bool { return leader() == 0 && emitted.Load() == total })
	second.cancel()
	<-second.ended
	eventually(t, "all to be in the journal", func() bool { return team[0].Status().Sources[0].Position == pipeline.Position(strconv.Itoa(total)) })
	team[0].cancel()
	<-team[0].ended
	checkNumbers(t, c, total)
	if most.Load() > 2 {
		t.Errorf("%d workers ran the source at a time", most.Load())
	}
}
