package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// Setting describes one setting of a stream: Kafka's topic settings and those
// that begin with "daybook.".
type Setting struct {
	Name    string
	Default string
	Kind    SettingKind
	// Doc is one sentence for people.
	Doc string
	// check refuses values that the kind alone lets through; nil means all pass.
	check func(value string) error
}

// SettingKind is the type of a setting's value, with Kafka's numbers for it.
type SettingKind int8

// The kinds that stream settings have.
const (
	KindBool   SettingKind = 1
	KindString SettingKind = 2
	KindInt    SettingKind = 3
	KindLong   SettingKind = 5
	KindDouble SettingKind = 6
	KindList   SettingKind = 7
)

// Names of the settings that Daybook acts upon. The others are kept and reported
// for the sake of tools, and their sentence says so.
const (
	SettingDurability     = "daybook.durability"
	SettingJournals       = "daybook.journals"
	SettingKeyIndex       = "daybook.key.index"
	SettingTagIndex       = "daybook.tag.index"
	SettingCleanupPolicy  = "cleanup.policy"
	SettingRetentionMS    = "retention.ms"
	SettingRetentionBytes = "retention.bytes"
	SettingMaxMessage     = "max.message.bytes"
	SettingTimestampType  = "message.timestamp.type"
	SettingTimestampAfter = "message.timestamp.after.max.ms"
	SettingTimestampPast  = "message.timestamp.before.max.ms"
)

const maxLong = "9223372036854775807"

// Settings returns every setting a stream has, sorted by name.
func Settings() []Setting {
	return []Setting{
		{SettingCleanupPolicy, "delete", KindList, "delete removes old records; compact keeps the whole stream, which holds the last record of every key.", listOf("delete", "compact")},
		{"compression.type", "producer", KindString, "Batches are stored as the producer compressed them.", oneOf("producer")},
		{SettingDurability, "durable", KindString, "durable: on stable storage on a majority before the answer; replicated: in the memory of a majority. Settable only when the stream is created.", oneOf("durable", "replicated")},
		{SettingJournals, "1", KindInt, "How many journals the partitions share; settable only when the stream is created.", between(1, maxJournals)},
		{SettingKeyIndex, "false", KindBool, "Keep an index by which the records of a key are found in milliseconds.", nil},
		{SettingTagIndex, "false", KindBool, "Keep an index by which consumers of STREAM@TAG are spared batches without the tag; the first such consumer switches it on, too, until the next restart.", nil},
		{"delete.retention.ms", "86400000", KindLong, "Kept and reported; Daybook does not compact.", atLeast(0)},
		{"file.delete.delay.ms", "60000", KindLong, "Kept and reported.", atLeast(0)},
		{"flush.messages", maxLong, KindLong, "Kept and reported; daybook.durability decides.", atLeast(1)},
		{"flush.ms", maxLong, KindLong, "Kept and reported; daybook.durability decides.", atLeast(0)},
		{"follower.replication.throttled.replicas", "", KindList, "Kept and reported.", nil},
		{"index.interval.bytes", "4096", KindInt, "Kept and reported; every batch is indexed.", atLeast(0)},
		{"leader.replication.throttled.replicas", "", KindList, "Kept and reported.", nil},
		{"local.retention.bytes", "-2", KindLong, "Kept and reported; there is no remote storage.", atLeast(-2)},
		{"local.retention.ms", "-2", KindLong, "Kept and reported; there is no remote storage.", atLeast(-2)},
		{"max.compaction.lag.ms", maxLong, KindLong, "Kept and reported; Daybook does not compact.", atLeast(1)},
		{SettingMaxMessage, "8388608", KindInt, "Largest batch in bytes, as compressed by the producer.", between(0, MaxBatchBytes)},
		{SettingTimestampAfter, maxLong, KindLong, "How far in the future a record's time may lie.", atLeast(0)},
		{SettingTimestampPast, maxLong, KindLong, "How far in the past a record's time may lie.", atLeast(0)},
		{SettingTimestampType, "CreateTime", KindString, "CreateTime keeps the producer's times; LogAppendTime stamps each batch when it is appended.", oneOf("CreateTime", "LogAppendTime")},
		{"min.cleanable.dirty.ratio", "0.5", KindDouble, "Kept and reported; Daybook does not compact.", nil},
		{"min.compaction.lag.ms", "0", KindLong, "Kept and reported; Daybook does not compact.", atLeast(0)},
		{"min.insync.replicas", "1", KindInt, "Kept and reported; an answer always stands for a majority.", atLeast(1)},
		{"preallocate", "false", KindBool, "Kept and reported; segments are always preallocated.", nil},
		{"remote.storage.enable", "false", KindBool, "There is no remote storage.", oneOf("false")},
		{SettingRetentionBytes, "-1", KindLong, "How many bytes each journal of the stream keeps; -1 is without limit.", atLeast(-1)},
		{SettingRetentionMS, "604800000", KindLong, "How long records are kept, in milliseconds; -1 is for ever.", atLeast(-1)},
		{"segment.bytes", "134217728", KindInt, "Kept and reported; the journal chooses its segments.", atLeast(14)},
		{"segment.index.bytes", "10485760", KindInt, "Kept and reported.", atLeast(4)},
		{"segment.jitter.ms", "0", KindLong, "Kept and reported.", atLeast(0)},
		{"segment.ms", "604800000", KindLong, "Kept and reported.", atLeast(1)},
		{"unclean.leader.election.enable", "false", KindBool, "Daybook never elects a leader that may lack acknowledged records.", oneOf("false")},
	}
}

// MaxBatchBytes is the largest batch that a stream can be set to accept.
const MaxBatchBytes = storage.MaxBatchBytes

// FindSetting returns the setting of that name.
func FindSetting(name string) (Setting, bool) {
	all := Settings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return all[i], true
}

// Check refuses a value that the setting cannot have.
func (s Setting) Check(value string) error {
	err := s.checkKind(value)
	if err == nil && s.check != nil {
		err = s.check(value)
	}
	if err != nil {
		return fmt.Errorf("%w: %s=%q: %w", ErrInvalidConfig, s.Name, value, err)
	}
	return nil
}

func (s Setting) checkKind(value string) error {
	var err error
	switch s.Kind {
	case KindBool:
		err = oneOf("true", "false")(value)
	case KindInt:
		_, err = strconv.ParseInt(value, 10, 32)
	case KindLong:
		_, err = strconv.ParseInt(value, 10, 64)
	case KindDouble:
		_, err = strconv.ParseFloat(value, 64)
	}
	return err
}

// CheckConfig refuses settings that are unknown or have impossible values.
func CheckConfig(config map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		s, ok := FindSetting(name)
		if !ok {
			return fmt.Errorf("%w: no setting %q", ErrInvalidConfig, name)
		}
		if err := s.Check(config[name]); err != nil {
			return err
		}
	}
	return nil
}

// Value returns the stream's value of a setting, given or default.
func (s *Stream) Value(name string) string {
	if v, ok := s.Config[name]; ok {
		return v
	}
	setting, _ := FindSetting(name)
	return setting.Default
}

// Policy is what the stream's settings mean to the journal and to produce
// requests.
type Policy struct {
	// Durable means that an append is answered only once it is on stable storage
	// on a majority.
	Durable bool
	// Retention is how long records are kept; negative is for ever.
	Retention time.Duration
	// RetentionBytes is how much each journal keeps; negative is without limit.
	RetentionBytes int64
	// Indexes are those over records that the journals keep.
	Indexes storage.Indexes
	// MaxBatchBytes is the largest batch accepted.
	MaxBatchBytes int
	// AppendTime means that batches get the time of their append.
	AppendTime bool
	// MaxBefore and MaxAfter bound how far a record's time may lie from now.
	MaxBefore, MaxAfter time.Duration
}

// Policy reads the stream's settings. They were checked when they were set.
func (s *Stream) Policy() Policy {
	p := Policy{
		Durable:        s.Value(SettingDurability) == "durable",
		Retention:      s.millis(SettingRetentionMS),
		RetentionBytes: s.integer(SettingRetentionBytes),
		Indexes:        storage.Indexes{Keys: s.Value(SettingKeyIndex) == "true", Tags: s.Value(SettingTagIndex) == "true"},
		MaxBatchBytes:  int(s.integer(SettingMaxMessage)),
		AppendTime:     s.Value(SettingTimestampType) == "LogAppendTime",
		MaxBefore:      s.millis(SettingTimestampPast),
		MaxAfter:       s.millis(SettingTimestampAfter),
	}
	// A compacted stream holds the last record of every key; as nothing is
	// compacted here, only keeping all of it keeps that promise.
	if policy := s.Value(SettingCleanupPolicy); strings.Contains(policy, "compact") {
		p.Retention, p.RetentionBytes = -1, -1
	}
	return p
}

func (s *Stream) integer(name string) int64 {
	n, _ := strconv.ParseInt(s.Value(name), 10, 64)
	return n
}

// millis reads a time in milliseconds, cut to what a Duration can hold.
func (s *Stream) millis(name string) time.Duration {
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(s.integer(name), longest)) * time.Millisecond
}

func oneOf(allowed ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(allowed, value) {
			return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
		}
		return nil
	}
}

func listOf(allowed ...string) func(string) error {
	one := oneOf(allowed...)
	return func(value string) error {
		for item := range strings.SplitSeq(value, ",") {
			if err := one(strings.TrimSpace(item)); err != nil {
				return err
			}
		}
		return nil
	}
}

func atLeast(low int64) func(string) error { return between(low, 1<<63-1) }

func between(low, high int64) func(string) error {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		if n < low || n > high {
			return fmt.Errorf("must be %d to %d", low, high)
		}
		return nil
	}
}
