package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/internal/services"
)

// recoverAt runs `daybook cluster recover` on a server's folder.
func recoverAt(t *testing.T, s *lookedServer, o node.RecoverOptions) (string, error) {
	t.Helper()
	var out bytes.Buffer
	o.Log = slog.New(slog.DiscardHandler)
	err := (&node.ClusterVerbs{Dir: s.dir, Out: &out}).Recover(t.Context(), o)
	return out.String(), err
}

// An operator whose cluster has lost two of three nodes is told what that costs, and goes on with the third.
func TestAnOperatorRecoversALostMajority(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 3)
	if _, err := kadm.NewClient(l.client()).CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	l.inOrder()
	const records = 100
	producer := l.client(kgo.DefaultProduceTopic("t"))
	for i := range records {
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	l.inOrder()
	left := l.servers[0]
	if _, err := recoverAt(t, left, node.RecoverOptions{AcceptLoss: true}); !errors.Is(err, node.ErrEnvironment) || !strings.Contains(err.Error(), "has to be stopped") {
		t.Errorf("while the server runs: %v", err)
	}
	l.stop(left)
	if _, err := recoverAt(t, left, node.RecoverOptions{AcceptLoss: true}); err == nil || !strings.Contains(err.Error(), "it is not gone") {
		t.Errorf("while another node answers: %v", err)
	}
	for _, s := range l.servers[1:] {
		l.stop(s)
	}
	out, err := recoverAt(t, left, node.RecoverOptions{})
	if !errors.Is(err, node.ErrNotRecovered) || !strings.Contains(out, "node 2 (") || !strings.Contains(out, "t/0") {
		t.Errorf("without being asked to: %v\n%s", err, out)
	}
	if out, err := recoverAt(t, left, node.RecoverOptions{AcceptLoss: true}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.start(left)
	l.inOrder()
	consumer := l.client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for next := 0; next < records; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		fetched := consumer.PollFetches(ctx)
		cancel()
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != fmt.Sprint(next) {
				t.Fatalf("offset %d holds %s, want %d", r.Offset, r.Value, next)
			}
			next++
		})
	}
}

// goOnAlone makes a cluster of the survivor of a lost majority, as its directory is.
func goOnAlone(t *testing.T, l *looked, survivor *lookedServer) {
	t.Helper()
	if out, err := recoverAt(t, survivor, node.RecoverOptions{AcceptLoss: true}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.start(survivor)
	l.inOrder()
}

// runsOnce returns what runs a pipeline up to the end of what there is.
func runsOnce(t *testing.T, config string) func() error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		return node.Run(ctx, node.RunOptions{Files: []string{file}, Once: true, HTTP: services.AddressForTest(t), Log: slog.New(slog.DiscardHandler)})
	}
}

// What the survivor of a lost majority does not have, sinks had: one that goes on reads neither past what is left nor, once
// new records have taken the place of the lost ones, on from where it was. It stops, and says so.
func TestSinksStopWhereARecoveredClusterLacksWhatTheyHad(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 3)
	if _, err := kadm.NewClient(l.client()).CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	l.inOrder()
	produce := func(what string, n int) {
		t.Helper()
		producer := l.client(kgo.DefaultProduceTopic("t"))
		for i := range n {
			if err := producer.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Appendf(nil, `{"n": "%s %d"}`, what, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	produce("kept", 10)
	l.inOrder()
	survivor := l.servers[0]
	l.stop(survivor)
	produce("lost", 10)
	seeds := []string{survivor.kafka, l.servers[1].kafka, l.servers[2].kafka}
	config := fmt.Sprintf("version: 1\npipeline: p\njournal: {brokers: [%s]}\nsinks:\n  - name: out\n    streams: [t]\n    file: {path: %q}\n",
		strings.Join(seeds, ", "), filepath.Join(t.TempDir(), "out", "{stream}.ndjson"))
	run := runsOnce(t, config)
	if err := run(); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.servers[1:] {
		l.stop(s)
	}
	goOnAlone(t, l, survivor)
	for _, state := range []string{"shorter than what the sink had", "longer again, with other records"} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "journal-shorter") {
			t.Errorf("with a journal that is %s the sink said %v", state, err)
		}
		produce("new", 20)
	}
}

// A source whose records a recovered journal lacks does not go on behind them, be the journal shorter than what it had
// appended, or longer again by what others appended.
func TestSourcesStopWhereARecoveredClusterLacksWhatTheyAppended(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 2)
	if _, err := kadm.NewClient(l.client()).CreateTopic(t.Context(), 1, 2, nil, "lines"); err != nil {
		t.Fatal(err)
	}
	l.inOrder()
	dir, seeds := t.TempDir(), []string{l.servers[0].kafka, l.servers[1].kafka}
	access := filepath.Join(dir, "access.log")
	config := fmt.Sprintf("version: 1\npipeline: p\njournal: {brokers: [%s]}\nsources:\n  - name: log\n    stream: lines\n    partitions: 1\n    nginx: {paths: [%q]}\n",
		strings.Join(seeds, ", "), access)
	run := runsOnce(t, config)
	logged := ""
	more := func() {
		t.Helper()
		logged += strings.Repeat(`127.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`+"\n", 10)
		if err := os.WriteFile(access, []byte(logged), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		l.inOrder()
		l.stop(l.servers[0])
	}
	survivor := l.servers[0]
	more()
	streams, older := filepath.Join(survivor.dir, "streams"), filepath.Join(dir, "older")
	if err := os.CopyFS(older, os.DirFS(streams)); err != nil {
		t.Fatal(err)
	}
	l.start(survivor)
	l.inOrder()
	more()
	l.stop(l.servers[1])
	// The survivor's journals are those of before, on a disk that was not used since; its metadata is of now.
	if err := errors.Join(os.RemoveAll(streams), os.Rename(older, streams)); err != nil {
		t.Fatal(err)
	}
	goOnAlone(t, l, survivor)
	for _, state := range []string{"shorter than what the source had appended", "longer again, with other records"} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "journal-shorter") {
			t.Errorf("with a journal that is %s the source said %v", state, err)
		}
		producer := l.client(kgo.DefaultProduceTopic("lines"))
		for range 20 {
			if err := producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte("{}")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
