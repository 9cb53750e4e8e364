package kafka_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// dial opens a bare connection to the broker.
func (b *broker) dial() net.Conn {
	b.t.Helper()
	var c net.Conn
	var err error
	if b.pipe {
		c, err = b.server.Load().Dial(b.t.Context())
	} else {
		c, err = net.Dial("tcp", b.addr)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// framed puts the length before a request.
func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// request encodes a request with its header.
func request(r kmsg.Request, correlation int32) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	return f.AppendRequest(nil, r, correlation)
}

// readAnswer returns an answer without its length.
func readAnswer(t *testing.T, c net.Conn) []byte {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatalf("reading an answer: %v", err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatalf("reading an answer: %v", err)
	}
	return answer
}

// closed fails the test unless the server ends the connection without an answer.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := io.Copy(io.Discard, c); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) { // EOF or reset
		t.Errorf("the server answered %d bytes, %v; want it to close", n, err)
	}
}

func apiVersions(version int16) []byte {
	r := kmsg.NewPtrApiVersionsRequest()
	r.Version = min(version, 3)
	r.ClientSoftwareName, r.ClientSoftwareVersion = "test", "1"
	body := request(r, 7)
	binary.BigEndian.PutUint16(body[4+2:], uint16(version))
	return body
}

func TestUnknownApiVersionsVersionIsAnsweredInVersionZero(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		for _, version := range []int16{6, 7, 99} {
			c := b.dial()
			if _, err := c.Write(apiVersions(version)); err != nil {
				t.Fatal(err)
			}
			answer := readAnswer(t, c)
			resp := kmsg.NewPtrApiVersionsResponse()
			resp.Version = 0
			if err := resp.ReadFrom(answer[4:]); err != nil {
				t.Fatalf("version %d: answer is no version 0: %v", version, err)
			}
			if resp.ErrorCode != kerr.UnsupportedVersion.Code || len(resp.ApiKeys) < 30 {
				t.Errorf("version %d: code %d with %d keys, want 35 with all", version, resp.ErrorCode, len(resp.ApiKeys))
			}
			if _, err := c.Write(apiVersions(3)); err != nil { // the client goes on
				t.Fatal(err)
			}
			readAnswer(t, c)
		}
	})
}

// What is offered must be answered, in every version, and what is not offered
// must not be: a request with nothing in it shows both.
func TestEveryOfferedVersionIsAnswered(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		c := b.dial()
		if _, err := c.Write(apiVersions(0)); err != nil {
			t.Fatal(err)
		}
		offered := kmsg.NewPtrApiVersionsResponse()
		if err := offered.ReadFrom(readAnswer(t, c)[4:]); err != nil {
			t.Fatal(err)
		}
		for _, k := range offered.ApiKeys {
			for version := k.MinVersion; version <= k.MaxVersion; version++ {
				req := kmsg.RequestForKey(k.ApiKey)
				req.SetVersion(version)
				if p, ok := req.(*kmsg.ProduceRequest); ok {
					p.Acks = -1
				}
				if _, err := c.Write(request(req, 9)); err != nil {
					t.Fatalf("%s version %d: %v", kmsg.NameForKey(k.ApiKey), version, err)
				}
				answer := readAnswer(t, c)
				if binary.BigEndian.Uint32(answer) != 9 {
					t.Fatalf("%s version %d: wrong correlation id", kmsg.NameForKey(k.ApiKey), version)
				}
				answer = answer[4:]
				resp := req.ResponseKind()
				if resp.IsFlexible() && k.ApiKey != int16(kmsg.ApiVersions) {
					answer = answer[1:]
				}
				if err := resp.ReadFrom(answer); err != nil {
					t.Errorf("%s version %d: answer cannot be read: %v", kmsg.NameForKey(k.ApiKey), version, err)
				}
			}
			for _, version := range []int16{k.MinVersion - 1, k.MaxVersion + 1} {
				if version < 0 || k.ApiKey == int16(kmsg.ApiVersions) {
					continue
				}
				other := b.dial()
				req := kmsg.RequestForKey(k.ApiKey)
				req.SetVersion(version)
				if _, err := other.Write(request(req, 9)); err != nil {
					t.Fatal(err)
				}
				closed(t, other)
			}
		}
	})
}

func TestOldMessageFormatsAreRefusedByName(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks = 2, -1
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = "t"
		p := kmsg.NewProduceRequestTopicPartition()
		p.Records = make([]byte, 40)
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		c := b.dial()
		if _, err := c.Write(request(req, 1)); err != nil {
			t.Fatal(err)
		}
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = 2
		if err := resp.ReadFrom(readAnswer(t, c)[4:]); err != nil {
			t.Fatal(err)
		}
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != kerr.UnsupportedVersion.Code {
			t.Errorf("got %v, want UNSUPPORTED_VERSION", kerr.ErrorForCode(code))
		}
	})
}

func TestNonsenseEndsItsConnectionAloneAndIsLoggedOnce(t *testing.T) {
	logger, logged := capture()
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.Logger = logger })
	metadata := request(kmsg.NewPtrMetadataRequest(), 1)
	for name, bytes := range map[string][]byte{
		"http":            []byte("GET / HTTP/1.1\r\nHost: daybook\r\n\r\n"),
		"negative length": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"absurd length":   {0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"zero length":     {0, 0, 0, 0},
		"unknown request": framed([]byte{0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff}),
		"cut short":       framed(metadata[4 : len(metadata)-2]),
		"large control":   binary.BigEndian.AppendUint32(nil, 50<<20),
		"huge array":      framed([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}),
		"produce, huge":   framed([]byte{0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff}),
	} {
		c := b.dial()
		if name == "large control" {
			bytes = append(bytes, 0, 3, 0, 0)
		}
		if _, err := c.Write(bytes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		closed(t, c)
	}
	produce(t, b.client(), numbered("t", 1)...) // others are served
	if n := strings.Count(logged(), "closing a Kafka connection"); n != 1 {
		t.Errorf("%d log lines for one remote, want 1:\n%s", n, logged())
	}
}

func TestDamagedBatchesAreRefusedAndNothingOfThemStored(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		change := func(f func(raw []byte) []byte) []byte { return f(plainBatch("a", "b")) }
		for name, c := range map[string]struct {
			raw  []byte
			want *kerr.Error
		}{
			"one bit":        {change(func(r []byte) []byte { r[len(r)-1] ^= 1; return r }), kerr.CorruptMessage},
			"cut":            {change(func(r []byte) []byte { return r[:len(r)-1] }), kerr.InvalidRecord},
			"nothing":        {[]byte{}, kerr.CorruptMessage},
			"header only":    {change(func(r []byte) []byte { return r[:61] }), kerr.InvalidRecord},
			"two batches":    {append(plainBatch("a"), plainBatch("b")...), kerr.InvalidRecord},
			"no records":     {change(func(r []byte) []byte { clear(r[57:61]); seal(r); return r }), kerr.InvalidRecord},
			"wrong count":    {change(func(r []byte) []byte { r[60] = 3; seal(r); return r }), kerr.InvalidRecord},
			"magic 1":        {change(func(r []byte) []byte { r[16] = 1; seal(r); return r }), kerr.InvalidRecord},
			"control":        {change(func(r []byte) []byte { r[22] |= 32; seal(r); return r }), kerr.InvalidRecord},
			"unknown codec":  {change(func(r []byte) []byte { r[22] |= 7; seal(r); return r }), kerr.InvalidRecord},
			"base offset":    {change(func(r []byte) []byte { r[7] = 9; return r }), kerr.InvalidRecord},
			"transactional":  {txnBatch(5, 0, 0, "a"), kerr.TransactionalIDAuthorizationFailed},
			"negative epoch": {batch{producer: 5, epoch: -1, values: []string{"a"}}.encode(), kerr.InvalidRecord},
		} {
			if code := produceRaw(t, b, "t", nil, c.raw); code != c.want.Code {
				t.Errorf("%s: %v, want %s", name, kerr.ErrorForCode(code), c.want.Message)
			}
		}
		if code, offset := produceRawAt(t, b, "t", nil, plainBatch("good")); code != 0 || offset != 0 {
			t.Errorf("the first good batch: %v at offset %d, want 0", kerr.ErrorForCode(code), offset)
		}
	})
}

func TestRandomBytesNeverPanic(t *testing.T) {
	b := newBroker(t, true)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := b.dial()
		body := make([]byte, 10+r.IntN(200))
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		keys := []int16{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 19, 22, 24, 28, 32, 44}
		binary.BigEndian.PutUint16(body, uint16(keys[r.IntN(len(keys))]))
		binary.BigEndian.PutUint16(body[2:], uint16(r.IntN(13)))
		if r.IntN(2) == 0 {
			body[8], body[9] = 0xff, 0xff // no client id
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = c.Write(framed(body))
		_ = c.Close()
	}
	produce(t, b.client(), numbered("t", 1)...)
}

// Clients that are too many are turned away; the others, and the journal's files, have room.
func TestTooManyConnectionsAreTurnedAway(t *testing.T) {
	const most = 5
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.MaxConnections = most })
	var conns []net.Conn
	for range most {
		c := b.dial()
		if _, err := c.Write(apiVersions(3)); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
		conns = append(conns, c)
	}
	if over, err := net.Dial("tcp", b.addr); err == nil { // else it was reset before the dial returned
		t.Cleanup(func() { _ = over.Close() })
		_ = over.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := over.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one connection too many was not closed: %v", err)
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
	produce(t, b.client(), numbered("t", 1)...)
}

// Where nobody says how many there may be, half of the descriptors are left.
func TestConnectionsLeaveDescriptorsToTheJournal(t *testing.T) {
	b := newBroker(t, false)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	all, err := kadm.NewClient(b.client()).DescribeBrokerConfigs(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, broker := range all {
		for _, c := range broker.Configs {
			if n, err := strconv.ParseUint(c.MaybeValue(), 10, 64); c.Key == "max.connections" && err == nil && n > 0 && n <= limit.Cur/2 {
				return
			}
		}
	}
	t.Errorf("of %d descriptors clients may take more than half: %v", limit.Cur, all)
}

func TestThousandIdleConnectionsCostLittle(t *testing.T) {
	b := newBroker(t, false)
	before := memory()
	conns := make([]net.Conn, 1000)
	for i := range conns {
		conns[i] = b.dial()
		if _, err := conns[i].Write(apiVersions(3)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		readAnswer(t, c)
	}
	if used := memory() - before; used > 64<<20 {
		t.Errorf("1,000 connections take %d MiB, want at most 64", used>>20)
	}
	produce(t, b.client(), numbered("t", 1)...)
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A client that asks and never reads must not make the server hold its answers.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.StallTimeout = 300 * time.Millisecond })
	b.topic("t", 1, nil)
	noise := make([]byte, 1<<20)
	for i := range 4 {
		if code := produceRaw(t, b, "t", nil, batch{producer: -1, epoch: -1, sequence: -1, timestamp: int64(i), values: []string{string(noise)}}.encode()); code != 0 {
			t.Fatal(kerr.ErrorForCode(code))
		}
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxBytes = 11, -1, 64<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.PartitionMaxBytes = -1, 64<<20
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	c := b.dial()
	_ = c.SetWriteDeadline(time.Now().Add(20 * time.Second))
	eventually(t, "being hung up on", func() error { // it asks on and on, and never reads
		if _, err := c.Write(request(req, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the connection still stands: %v", err)
		}
		return nil
	})
}
