package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/keepalive"
)

// JournalOptions say how a journal is reached.
type JournalOptions struct {
	// Seeds are the addresses of brokers, host:port.
	Seeds []string
	// Dialer makes the connections; nil is TCP, with or without TLS,
	// and connections to a broker that is silent are closed. An embedded journal hands out pipes.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS and SASL are how the brokers are reached; nil for neither.
	TLS  *JournalTLS
	SASL *JournalSASL
	// Remote says that other processes may write to the journal, and this one's
	// predecessor may still: sources then append in transactions, which fence it.
	Remote bool
	// Compress is none, lz4, zstd, gzip or snappy; empty is lz4.
	Compress string
	// Mode and Retain are for streams that are made; see JournalConfig.
	Mode   string
	Retain RetainConfig
	// Log gets what the Kafka client has to say; nil is silence.
	Log *slog.Logger
}

// Journal is a journal as a Kafka client sees it: embedded in the process, a Daybook
// cluster or somebody's Kafka, all by the same code. It is safe for concurrent use.
type Journal struct {
	options JournalOptions
	log     *slog.Logger

	dial keepalive.Dial

	// client serves what has no state of its own: metadata, offsets, and appends to
	// Daybook's own streams (see append).
	client  *kgo.Client
	admin   *kadm.Client
	trouble lastError

	mu       sync.Mutex
	ensured  map[string]bool     // own streams known to be there
	stampers map[string]*stamper // by stream
}

// OpenJournal returns the journal. It does not wait for the network; Ping does.
func OpenJournal(o JournalOptions) (*Journal, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retain == (RetainConfig{}) {
		o.Retain.Time = 7 * 24 * time.Hour
	}
	j := &Journal{options: o, log: o.Log, ensured: map[string]bool{}, stampers: map[string]*stamper{}}
	if j.dial = o.Dialer; j.dial == nil {
		if o.TLS != nil {
			if _, err := o.TLS.config(); err != nil {
				return nil, fmt.Errorf("setting up clients of the journal: %w", err)
			}
		}
		j.dial = keepalive.New(j.options.dial, o.Log).DialContext
	}
	client, err := j.newClient(producerOptions(o)...)
	if err != nil {
		return nil, err
	}
	j.client, j.admin = client, kadm.NewClient(client)
	j.admin.SetTimeoutMillis(10_000)
	return j, nil
}

// Close lets go of the connections. Appends still under way fail.
func (j *Journal) Close() { j.client.Close() }

// Ping returns nil once a broker has answered.
func (j *Journal) Ping(ctx context.Context) error {
	if err := j.client.Ping(ctx); err != nil {
		return fmt.Errorf("reaching the journal at %v: %w", j.options.Seeds, err)
	}
	return nil
}

// newClient returns a Kafka client of the journal with further options.
func (j *Journal) newClient(more ...kgo.Opt) (*kgo.Client, error) {
	o := []kgo.Opt{
		kgo.SeedBrokers(j.options.Seeds...),
		kgo.Dialer(j.dial),
		kgo.ClientID("daybook"),
		kgo.WithLogger(kafkaLog{j.log, &j.trouble}),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.RetryBackoffFn(retryBackoff),
		kgo.DisableClientMetrics(),
	}
	if j.options.SASL != nil {
		o = append(o, kgo.SASL(j.options.SASL.mechanism()))
	}
	client, err := kgo.NewClient(append(o, more...)...)
	if err != nil {
		return nil, fmt.Errorf("setting up a client of the journal: %w", err)
	}
	return client, nil
}

// retryBackoff doubles from 50 ms to 2 s.
func retryBackoff(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 10), 2*time.Second)
}

// producerOptions make appends idempotent and patient: what was accepted is retried
// until the journal has answered for it, and nothing is ever skipped over.
func producerOptions(o JournalOptions) []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.StopProducerOnDataLossDetected(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec(o.Compress)),
		kgo.ProducerLinger(time.Millisecond),
		kgo.MaxBufferedRecords(1 << 20), // the emitter bounds what is in flight, by bytes
		kgo.ProducerBatchMaxBytes(maxBatch),
		kgo.UnknownTopicRetries(8),
	}
}

// maxBatch is the size of the batches that are built; below the least limit that a
// broker is likely to have (Kafka's own is 1,048,588).
const maxBatch = 1_000_000

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "none":
		return kgo.NoCompression()
	case "zstd":
		return kgo.ZstdCompression()
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	}
	return kgo.Lz4Compression()
}

// append appends records to partitions given in them and returns when they are
// durable. It is for Daybook's own streams: nothing is deduplicated here, and where ctx
// ends first a record may or may not be there.
func (j *Journal) append(ctx context.Context, records ...*kgo.Record) error {
	// The client does not let go of a record that it may have sent, whatever its context
	// says; so the records get none and the waiting ends by itself.
	done := make(chan error, len(records))
	for _, k := range records {
		j.client.Produce(context.Background(), k, func(_ *kgo.Record, err error) { done <- err })
	}
	for range records {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-done:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stamper returns the source of stamps that all writers of a stream in this process
// share.
func (j *Journal) stamper(stream string) *stamper {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stampers[stream]
	if s == nil {
		s = &stamper{}
		j.stampers[stream] = s
	}
	return s
}

// kafkaLog passes on what the Kafka client has to say, one level down: it warns of
// what it will retry by itself. The last error is kept for the operator who finds that nothing moves.
type kafkaLog struct {
	log  *slog.Logger
	last *lastError
}

// lastError is what the Kafka client complained of last.
type lastError struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

func (l *lastError) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.at = text, time.Now()
}

// since returns the error if it is not older than that.
func (l *lastError) since(age time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" || time.Since(l.at) > age {
		return ""
	}
	return l.text
}

// Level implements kgo.Logger.
func (k kafkaLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (k kafkaLog) Log(level kgo.LogLevel, message string, keyvals ...any) {
	to := slog.LevelDebug
	if level == kgo.LogLevelError {
		to = slog.LevelWarn
	}
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "err" && keyvals[i+1] != nil {
			k.last.note(fmt.Sprintf("%s: %v", message, keyvals[i+1]))
		}
	}
	k.log.Log(context.Background(), to, "journal client", append([]any{"message", message}, keyvals...)...)
}
