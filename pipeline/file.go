package pipeline

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/daybook-data/daybook/configs"
)

// Kinds are the kinds of source and sink that a pipeline file may name.
type Kinds struct {
	Sources []SourceSpec
	Sinks   []SinkSpec
}

// File is a pipeline file: what one says of a pipeline, and all of it.
type File struct {
	Version  int
	Pipeline string
	Journal  JournalConfig
	Sources  []SourceEntry
	Sinks    []SinkEntry
	Path     string // where it was read from; empty where it was not

	kinds Kinds
}

// LoadFile reads a pipeline file. The error is of type configs.Problems where the
// file is there but not right.
func LoadFile(path string, kinds Kinds) (*File, error) {
	f := NewFile(kinds)
	if err := configs.Load(path, f); err != nil {
		return nil, err
	}
	f.Path = path
	return f, nil
}

// LookAtFile is LoadFile for commands that read the journal but run nothing: of secrets only those
// of the journal are asked for.
func LookAtFile(path string, kinds Kinds) (*File, error) {
	f := NewFile(kinds)
	if err := configs.LoadForSecretsOf("journal", path, f); err != nil {
		return nil, err
	}
	return f, nil
}

// NewFile returns an empty File, for decoding and for generating its documents.
func NewFile(kinds Kinds) *File { return &File{kinds: kinds} }

// Fields declares the top level of the file.
func (f *File) Fields(d *configs.Fields) {
	d.Int(&f.Version, "version", 1, "Version of the file's form: 1.", configs.Required, configs.Range(1, 1))
	d.String(&f.Pipeline, "pipeline", "", "Name of the pipeline; its cursors and dead letters carry it.", configs.Required, configs.Name)
	d.Sub(&f.Journal, "journal", "Where the records are kept.")
	configs.ListOf(d, &f.Sources, "sources", "What is read into the journal.", func() *SourceEntry { return &SourceEntry{kinds: f.kinds.Sources} })
	configs.ListOf(d, &f.Sinks, "sinks", "What is written from the journal.", func() *SinkEntry { return &SinkEntry{kinds: f.kinds.Sinks} })
}

// Check holds the rules between entries: names are unique, and so are the places that
// sinks fill.
func (f *File) Check(at *configs.At) {
	seen := map[string]bool{}
	for i := range f.Sources {
		f.checkName(at.Item("sources", i), seen, f.Sources[i].Name)
		f.checkMemory(at.Item("sources", i), &f.Sources[i])
	}
	filledBy := map[string]string{}
	for i := range f.Sinks {
		f.checkName(at.Item("sinks", i), seen, f.Sinks[i].Name)
		f.checkClaims(at.Item("sinks", i), filledBy, &f.Sinks[i])
	}
	if len(f.Sources)+len(f.Sinks) == 0 {
		at.Errorf("", "has neither sources nor sinks: there is nothing to do")
	}
}

func (f *File) checkName(at *configs.At, seen map[string]bool, name string) {
	if seen[name] {
		at.Errorf("name", "the name %q is taken: sources and sinks of a pipeline share one set of names", name)
	}
	seen[name] = true
}

// checkMemory refuses a stream that is kept for a shorter time than its source needs it.
func (f *File) checkMemory(at *configs.At, s *SourceEntry) {
	r, ok := s.Config.(Rememberer)
	if !ok {
		return
	}
	if need, kept := r.Remembers(), f.Journal.Retain.Time; kept > 0 && kept < need {
		at.Errorf(s.Kind, "knows what it has stored for %s from its stream, but `journal.retain.time` keeps that for %s", need, kept)
	}
}

func (f *File) checkClaims(at *configs.At, filledBy map[string]string, s *SinkEntry) {
	c, ok := s.Config.(Claimer)
	if !ok {
		return
	}
	for _, place := range c.Claims(s.Streams) {
		if other, taken := filledBy[s.Kind+" "+place]; taken {
			at.Errorf(s.Kind, "sink %s writes to %s as well: give each a place of its own", other, place)
			return
		}
		filledBy[s.Kind+" "+place] = s.Name
	}
}

// JournalConfig says where the journal is: embedded in a folder, or behind brokers.
type JournalConfig struct {
	Dir      string
	Brokers  []string
	TLS      *JournalTLS  // nil: connections are not encrypted
	SASL     *JournalSASL // nil: nobody logs in
	Compress string
	Retain   RetainConfig
	Mode     string
	Disk     *DiskConfig // nil: the defaults
}

// RetainConfig bounds what is kept. What a sink still needs is never removed.
type RetainConfig struct {
	Time time.Duration
	Size int64
}

// Fields declares the journal section.
func (j *JournalConfig) Fields(d *configs.Fields) {
	d.String(&j.Dir, "dir", "", "Folder of the embedded journal; made if missing. Give this or `brokers`.")
	d.Strings(&j.Brokers, "brokers", nil, "Addresses of a Daybook server, a Daybook cluster or a Kafka, host:port.", configs.HostPort)
	configs.Optional(d, &j.TLS, "tls", "Encryption of the connections to the brokers; `tls: {}` trusts the system's certificates.")
	configs.Optional(d, &j.SASL, "sasl", "Login at the brokers.")
	d.String(&j.Compress, "compress", "lz4", "How batches are compressed.", configs.Enum("none", "lz4", "zstd", "gzip", "snappy"))
	d.String(&j.Mode, "durability", "durable", "When an append counts: durable is on stable storage, replicated is in memory of a majority and flushed within a bound.", configs.Enum("durable", "replicated"))
	d.Sub(&j.Retain, "retain", "How long streams made by this pipeline are kept; what a sink of a pipeline still needs is kept longer.")
	configs.Optional(d, &j.Disk, "disk", "How an embedded journal treats its disk.")
}

// Fields declares the bounds of retention.
func (r *RetainConfig) Fields(d *configs.Fields) {
	d.Duration(&r.Time, "time", 7*24*time.Hour, "Keep records at least this long; 0s keeps them for ever.")
	d.Size(&r.Size, "size", 0, "Keep at most this much of each stream; 0B sets no bound.")
}

// Check wants exactly one of dir and brokers.
func (j *JournalConfig) Check(at *configs.At) {
	switch {
	case j.Dir == "" && len(j.Brokers) == 0:
		at.Errorf("", "says neither `dir: FOLDER` (embedded) nor `brokers: [host:port]`")
	case j.Dir != "" && len(j.Brokers) > 0:
		at.Errorf("brokers", "both `dir` and `brokers`: the journal is in one place")
	case j.Dir == "" && j.Disk != nil:
		at.Errorf("disk", "is for a journal in a folder; behind `brokers` the brokers have the disk")
	case j.Dir != "" && j.TLS != nil:
		at.Errorf("tls", "is for `brokers`: an embedded journal is in the same process")
	case j.Dir != "" && j.SASL != nil:
		at.Errorf("sasl", "is for `brokers`: an embedded journal is in the same process")
	case j.SASL != nil && j.SASL.Mechanism == saslPlain && j.TLS == nil && !loopback(j.Brokers):
		at.Errorf("sasl.mechanism", "plain without `tls` shows the password to the network: use scram-sha-512, or add `tls`")
	}
}

// loopback says that all addresses are of this machine.
func loopback(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(addr string) bool {
		host, _, err := net.SplitHostPort(addr)
		ip := net.ParseIP(host)
		return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}

// SourceEntry is one element of `sources`.
type SourceEntry struct {
	Name        string
	Stream      string
	Partitions  int
	Journals    int
	PartitionBy string
	Index       []string
	Kind        string
	Config      SourceConfig

	kinds   []SourceSpec
	changes bool // see SourceSpec.Changes
}

// Fields declares what every source has, and the choice of its kind.
func (s *SourceEntry) Fields(d *configs.Fields) {
	d.String(&s.Name, "name", "", "Name of the source, unique in the pipeline. Its cursor carries it: renaming starts anew.", configs.Required, configs.Name)
	d.String(&s.Stream, "stream", "", "Stream it appends to; made if missing.", configs.Required, configs.Name, notInternal)
	d.Int(&s.Partitions, "partitions", 1, "Partitions of the stream, where this source makes it.", configs.Range(1, 1024))
	d.Int(&s.Journals, "journals", 1, "Journals that a Daybook shares these partitions out to, each with copies and a leader of its own; at most as many as partitions. A Kafka's partitions lie apart in any case.", configs.Range(1, 256))
	d.String(&s.PartitionBy, "partition_by", "key", "What keeps records together in one partition, and so in order.", configs.Enum("key", "table", "none"))
	d.Strings(&s.Index, "index", nil, "Indexes that a Daybook keeps of the stream: key finds the records of a key (`daybook get`), tag lets a reader of stream@TABLE pass over the batches of other tables. Taking one out of here leaves it with the stream.", configs.Enum(indexKey, indexTag))
	choices := make([]configs.Choice, len(s.kinds))
	for i, k := range s.kinds {
		choices[i] = configs.Choice{Key: k.Kind, Doc: k.Doc, New: func() configs.Section { return k.New() }}
	}
	d.OneOf("kind of source", choices, func(kind string, c configs.Section) {
		s.Kind, s.Config = kind, c.(SourceConfig)
		s.changes = slices.ContainsFunc(s.kinds, func(k SourceSpec) bool { return k.Kind == kind && k.Changes })
	})
}

// Check holds that no journal is without a partition.
func (s *SourceEntry) Check(at *configs.At) {
	if s.Journals > s.Partitions {
		at.Errorf("journals", "%d journals for a stream of `partitions: %d`: each journal needs one at least", s.Journals, s.Partitions)
	}
}

// notInternal keeps users' records out of the streams that Daybook keeps for itself.
var notInternal = configs.Func("not beginning with `daybook.`", func(name string) error {
	if len(name) >= 8 && name[:8] == "daybook." {
		return fmt.Errorf("%q: names that begin with `daybook.` are Daybook's own", name)
	}
	return nil
})

// SinkEntry is one element of `sinks`.
type SinkEntry struct {
	Name    string
	Streams []string
	Where   string
	Order   *OrderConfig
	Batch   BatchConfig
	Kind    string
	Config  SinkConfig

	kinds []SinkSpec
}

// Fields declares what every sink has, and the choice of its kind.
func (s *SinkEntry) Fields(d *configs.Fields) {
	d.String(&s.Name, "name", "", "Name of the sink, unique in the pipeline. Its cursor carries it: renaming starts anew.", configs.Required, configs.Name)
	d.Strings(&s.Streams, "streams", nil, "Streams it reads.", configs.Required, configs.NotEmpty, configs.Name)
	d.String(&s.Where, "where", "", "Which records it takes, an expression over the row's fields and table, db, op, stream, key. For changes it is judged on before and after: leaving the set is a delete. What it can't judge (nil > 3) is a dead letter and not in the set.")
	configs.Optional(d, &s.Order, "order", "Puts records into event-time order before the sink sees them. Off where this is missing.")
	d.Sub(&s.Batch, "batch", "When a batch is handed to the destination.")
	choices := make([]configs.Choice, len(s.kinds))
	for i, k := range s.kinds {
		choices[i] = configs.Choice{Key: k.Kind, Doc: k.Doc, New: func() configs.Section { return k.New() }}
	}
	d.OneOf("kind of sink", choices, func(kind string, c configs.Section) { s.Kind, s.Config = kind, c.(SinkConfig) })
}

// Check compiles `where`, so that a slip in it is found before anything runs.
func (s *SinkEntry) Check(at *configs.At) {
	if s.Where == "" {
		return
	}
	if _, err := CompileWhere(s.Where); err != nil {
		at.Errorf("where", "%v", err)
	}
}

// BatchConfig bounds a batch; the first bound reached hands it on.
type BatchConfig struct {
	Records int
	Bytes   int64
	Time    time.Duration
}

// Fields declares the bounds.
func (b *BatchConfig) Fields(d *configs.Fields) {
	d.Int(&b.Records, "records", 2000, "At most this many records.", configs.Range(1, 1_000_000))
	d.Size(&b.Bytes, "bytes", 8*configs.MiB, "At most about this many bytes.", configs.Positive)
	d.Duration(&b.Time, "time", 500*time.Millisecond, "At most this long after its first record.", configs.Positive)
}

// OrderConfig configures the reorderer.
type OrderConfig struct {
	By            string
	Per           string
	MaxOutOfOrder time.Duration
	IdleAfter     time.Duration
	Hold          time.Duration
	Memory        int64
	Late          string
	Future        time.Duration
	Implausible   string
	IKnow         bool
}

// Fields declares the reorderer's options.
func (o *OrderConfig) Fields(d *configs.Fields) {
	d.Duration(&o.MaxOutOfOrder, "max_out_of_order", 0, "Bound B: how far behind its source's newest record a record may come and still be in order.", configs.Required)
	d.String(&o.By, "by", "auto", "event sorts all records by event time; source keeps each source's own order and interleaves sources by time. auto is source for streams of database changes, else event.", configs.Enum("auto", "event", "source"))
	d.String(&o.Per, "per", "stream", "stream gives one order over all partitions, which one worker then reads; partition orders each alone.", configs.Enum("stream", "partition"))
	d.Duration(&o.IdleAfter, "idle_after", 0, "A source silent this long no longer holds the others back; at least max_out_of_order. 0s is twice max_out_of_order, 10s at least.")
	d.Duration(&o.Hold, "hold", 0, "No record waits longer than this, in append time. 0s is ten times max_out_of_order, 60s at least.")
	d.Size(&o.Memory, "memory", 256*configs.MiB, "At most about this much is held back; then the oldest go on.", configs.Positive)
	d.String(&o.Late, "late", "side", "What becomes of a record that comes after its time was released: side keeps it in the stream daybook.late.PIPELINE.SINK, pass delivers it at once, drop counts it.", configs.Enum("side", "pass", "drop"))
	d.Duration(&o.Future, "future", 5*time.Minute, "A record dated more than this after its append is implausible.")
	d.String(&o.Implausible, "implausible", "clamp", "What becomes of a record with an implausible time: clamp orders it by its append stamp, side keeps it in the stream daybook.late.PIPELINE.SINK.", configs.Enum("clamp", "side"))
	d.Bool(&o.IKnow, "i_know", false, "Allows `by: event` on a stream of database changes, where it can invert updates of a key.")
}

// Check holds the reorderer's own rule between its options.
func (o *OrderConfig) Check(at *configs.At) {
	if o.IdleAfter != 0 && o.IdleAfter < o.MaxOutOfOrder {
		at.Errorf("idle_after", "%s is shorter than max_out_of_order (%s): a source would turn idle while its records may still come", o.IdleAfter, o.MaxOutOfOrder)
	}
}
