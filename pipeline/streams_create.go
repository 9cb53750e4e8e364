package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Settings that only a Daybook has. They are settled when a stream is made.
const (
	settingDurability = "daybook.durability"
	settingJournals   = "daybook.journals"
)

// NewStream is what a stream is to be like where it is made.
type NewStream struct {
	Name       string
	Partitions int
	// Journals is how many journals a Daybook shares the partitions out to, each with copies and a leader of its own; 0
	// and 1 are one.
	Journals int
	// Copies is how many nodes have each of them; 0 is what the journal makes by itself.
	Copies int
	// Settings are by their names in Kafka; what is not among them has the journal's own defaults.
	Settings map[string]string
}

// Create makes a stream. The error says why the journal refuses it, also where one of the name is there.
func (j *Journal) Create(ctx context.Context, n NewStream) error {
	settings := map[string]*string{}
	for name, value := range n.Settings {
		settings[name] = &value
	}
	if n.Journals > 1 {
		count := strconv.Itoa(n.Journals)
		settings[settingJournals] = &count
	}
	copies := int16(n.Copies)
	if copies == 0 {
		copies = -1
	}
	r, err := j.admin.CreateTopic(ctx, int32(n.Partitions), copies, settings, n.Name)
	if err != nil && r.ErrMessage != "" {
		err = &refusal{said: r.ErrMessage, code: err}
	}
	if err != nil {
		return fmt.Errorf("creating stream %s: %w", n.Name, err)
	}
	return nil
}

// refusal is an error of a broker in the broker's own words.
type refusal struct {
	said string
	code error
}

func (r *refusal) Error() string { return r.said }
func (r *refusal) Unwrap() error { return r.code }

// Ensure makes the stream where it is missing, with the journal's retention and
// durability, and describes it as it is.
func (j *Journal) Ensure(ctx context.Context, stream string, partitions, journals int) (StreamInfo, error) {
	return j.ensure(ctx, NewStream{Name: stream, Partitions: partitions, Journals: journals}, j.options.Retain, j.options.Mode)
}

// ensureOwn makes one of Daybook's own streams where it is missing: one partition,
// kept for the given time, or for ever where that is zero.
func (j *Journal) ensureOwn(ctx context.Context, stream string, keep time.Duration) error {
	j.mu.Lock()
	known := j.ensured[stream]
	j.mu.Unlock()
	if known {
		return nil
	}
	if _, err := j.ensure(ctx, NewStream{Name: stream, Partitions: 1}, RetainConfig{Time: keep}, "durable"); err != nil {
		return err
	}
	j.mu.Lock()
	j.ensured[stream] = true
	j.mu.Unlock()
	return nil
}

func (j *Journal) ensure(ctx context.Context, n NewStream, retain RetainConfig, mode string) (StreamInfo, error) {
	info, err := j.awaitLeaders(ctx, n.Name)
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return info, err
	}
	n.Settings = kept(retain)
	if mode != "" {
		n.Settings[settingDurability] = mode
	}
	err = j.Create(ctx, n)
	if errors.Is(err, kerr.InvalidConfig) { // not a Daybook
		delete(n.Settings, settingDurability)
		n.Journals = 0
		err = j.Create(ctx, n)
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return StreamInfo{}, err
	}
	// A cluster tells its nodes one after the other.
	for {
		info, err = j.awaitLeaders(ctx, n.Name)
		if !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return info, err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return info, err
		}
	}
}

// firstElection is how long a stream that was just made may go without leaders before that
// is a fault like any other.
const firstElection = 5 * time.Second

// awaitLeaders is Stream for who will use it at once.
func (j *Journal) awaitLeaders(ctx context.Context, name string) (StreamInfo, error) {
	for began := time.Now(); ; {
		info, err := j.Stream(ctx, name)
		if err != nil || info.led || time.Since(began) > firstElection {
			return info, err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return info, err
		}
	}
}

// kept are the settings of a stream that is kept for so long, and whose records have the times that they are given.
func kept(r RetainConfig) map[string]string {
	settings := map[string]string{
		"message.timestamp.type": "CreateTime",
		"retention.ms":           "-1",
		"retention.bytes":        "-1",
		"cleanup.policy":         "delete",
	}
	if r.Time > 0 {
		settings["retention.ms"] = strconv.FormatInt(r.Time.Milliseconds(), 10)
	}
	if r.Size > 0 {
		settings["retention.bytes"] = strconv.FormatInt(r.Size, 10)
	}
	return settings
}
