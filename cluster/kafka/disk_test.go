package kafka_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/internal/vfs"
)

// stuckFS is a disk whose syncs can be made to hang.
type stuckFS struct {
	vfs.FS

	mu   sync.Mutex
	name string
	hang chan struct{}
}

// stick makes syncs of files whose name contains name hang until the returned
// function is called.
func (s *stuckFS) stick(name string) (free func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name, s.hang = name, make(chan struct{})
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.hang)
		s.hang = nil
	})
}

func (s *stuckFS) wait(name string) {
	s.mu.Lock()
	hang := s.hang
	if !strings.Contains(name, s.name) {
		hang = nil
	}
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

func (s *stuckFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return stuckFile{f, s}, nil
}

type stuckFile struct {
	vfs.File
	fs *stuckFS
}

func (f stuckFile) Sync() error {
	f.fs.wait(f.Name())
	return f.File.Sync()
}

func TestHungDiskTimesRequestsOutAndHoldsUpNobodyElse(t *testing.T) {
	disk := &stuckFS{FS: vfs.OS{}}
	b := newBroker(t, false, func(n *cluster.Options, _ *kafka.Options) { n.FS = disk })
	b.topic("stuck", 1, nil)
	b.topic("well", 1, nil)
	id, epoch := producerID(t, b)
	raw := batch{producer: id, epoch: epoch, values: []string{"v"}}.encode
	stream, _ := b.node.Meta().Stream("stuck")
	if code := produceRaw(t, b, "stuck", nil, plainBatch("first")); code != 0 {
		t.Fatal(kerr.ErrorForCode(code))
	}
	free := disk.stick(stream.ID.String())
	t.Cleanup(free)
	b.timeoutMillis = 1
	if code := produceRaw(t, b, "stuck", nil, raw()); code != kerr.RequestTimedOut.Code {
		t.Errorf("got %v, want REQUEST_TIMED_OUT", kerr.ErrorForCode(code))
	}
	b.timeoutMillis = 0
	if code := produceRaw(t, b, "well", nil, plainBatch("v")); code != 0 {
		t.Errorf("the other topic: %v", kerr.ErrorForCode(code))
	}
	free()
	eventually(t, "sending again", func() error {
		code, offset := produceRawAt(t, b, "stuck", nil, raw())
		if code == 0 && offset != 1 {
			t.Fatalf("the batch is stored at %d, want 1: once", offset)
		}
		return kerr.ErrorForCode(code)
	})
}

func TestFullDiskIsARetriableErrorAndProducersGoOnAfterIt(t *testing.T) {
	disk := vfs.NewFaulty(vfs.OS{})
	b := newBroker(t, false, func(n *cluster.Options, _ *kafka.Options) { n.FS = disk })
	c := b.client(kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(t, c, numbered("t", 1)...)
	disk.Limit(0)
	eventually(t, "filling the disk", func() error {
		code := produceRaw(t, b, "t", nil, plainBatch(strings.Repeat("x", 64<<10)))
		if code != 0 && !kerr.IsRetriable(kerr.ErrorForCode(code)) {
			t.Fatalf("got %v, want a retriable error", kerr.ErrorForCode(code))
		}
		if code == 0 {
			return fmt.Errorf("still room")
		}
		return nil
	})
	done := make(chan error, 1)
	c.Produce(t.Context(), &kgo.Record{Value: []byte("patient")}, func(_ *kgo.Record, err error) { done <- err })
	disk.Heal()
	if err := <-done; err != nil {
		t.Errorf("the producer gave up: %v", err)
	}
}

func TestFailedDiskIsReportedAsSuch(t *testing.T) {
	disk := vfs.NewFaulty(vfs.OS{})
	b := newBroker(t, false, func(n *cluster.Options, _ *kafka.Options) { n.FS = disk })
	b.topic("t", 1, nil)
	if code := produceRaw(t, b, "t", nil, plainBatch("v")); code != 0 {
		t.Fatal(kerr.ErrorForCode(code))
	}
	stream, _ := b.node.Meta().Stream("t")
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Name: stream.ID.String(), Keep: true})
	for range 2 {
		if code := produceRaw(t, b, "t", nil, plainBatch("w")); code != kerr.KafkaStorageError.Code {
			t.Errorf("got %v, want KAFKA_STORAGE_ERROR", kerr.ErrorForCode(code))
		}
	}
	if got := consume(t, b.client(kgo.ConsumeTopics("t")), 1); string(got[0].Value) != "v" {
		t.Errorf("read %s, want what was stored before", got[0].Value)
	}
}
