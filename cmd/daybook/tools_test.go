package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// daybook runs the program and returns what it prints; its exit code must be the wanted one.
func daybook(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, log bytes.Buffer
	if got := run(t.Context(), append(args, "--log-level", "error"), &out, &log); got != code {
		t.Fatalf("daybook %s: exit code %d, want %d:\n%s%s", strings.Join(args, " "), got, code, &out, &log)
	}
	return out.String() + log.String()
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// serve runs a server on dir; the returned function stops it.
func serve(t *testing.T, dir string) (addr string, stop func()) {
	t.Helper()
	addr = freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var log bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"server", "--data", dir, "--kafka", addr, "--http", "", "--log-level", "warn"}, &log, &log)
	}()
	stop = func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("the server ended with exit code %d:\n%s", code, &log)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
			return addr, stop
		}
		if time.Now().After(deadline) {
			stop()
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// fill makes a stream with a key index and puts n records of each of two keys into it, in turn.
func fill(t *testing.T, addr, stream string, n int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	index := "true"
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, map[string]*string{"daybook.key.index": &index}, stream); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for p, key := range []string{"a", "b"} {
			r := kgo.Record{Topic: stream, Partition: int32(p), Key: []byte(key), Value: fmt.Appendf(nil, `{"n":%d}`, i)}
			if err := client.ProduceSync(t.Context(), &r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func lines(s string) int { return strings.Count(s, "\n") }

func TestBenchLoadsAServer(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, t.TempDir())
	defer stop()
	text := daybook(t, exitOK, "bench", "--brokers", addr, "--records", "2000", "--verify", "--server-pid", fmt.Sprint(os.Getpid()), "--mode", "both")
	for _, want := range []string{"produced  2,000", "consumed  2,000", "server", "verified"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var r struct {
		Ratio    float64
		Produced struct {
			Records int64
			Latency struct {
				P99 float64 `json:"p99_ms"`
			}
		}
	}
	text = daybook(t, exitOK, "bench", "--brokers", addr, "--stream", "raw", "--raw", "--batch-records", "100", "--corpus", "constant",
		"--durability", "replicated", "--records", "5000", "--rate", "20000", "--json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Produced.Records < 5000 || r.Produced.Records > 5500 || r.Ratio < 30 || r.Produced.Latency.P99 <= 0 {
		t.Errorf("%v, %+v in\n%s", err, r, text)
	}
	daybook(t, exitConfig, "bench", "--brokers", addr, "--corpus", "xml")
}

func TestJournalToolsReadBesideAServerAndWithoutOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, stop := serve(t, dir)
	fill(t, addr, "shop", 50)
	look := func() {
		t.Helper()
		if text := daybook(t, exitOK, "journal", "ls", dir); !strings.Contains(text, "of stream shop") || !strings.Contains(text, "of the metadata") {
			t.Errorf("ls shows\n%s", text)
		}
		var list []struct {
			Stream     string
			Partitions []struct{ Partition, First, Next int64 }
		}
		if err := json.Unmarshal([]byte(daybook(t, exitOK, "journal", "ls", dir, "--json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, j := range list {
			if j.Stream == "shop" && (len(j.Partitions) != 2 || j.Partitions[1].Next != 50) {
				t.Errorf("ls --json shows partitions %+v", j.Partitions)
			}
		}
		text := daybook(t, exitOK, "journal", "read", dir, "--stream", "shop", "--partition", "1", "--from", "48")
		if lines(text) != 2 || !strings.Contains(text, `"offset":49`) || !strings.Contains(text, `"value":{"n":49}`) || strings.Contains(text, `"key":"a"`) {
			t.Errorf("read prints\n%s", text)
		}
		if text := daybook(t, exitOK, "journal", "read", dir, "--stream", "shop", "-n", "3"); lines(text) != 3 {
			t.Errorf("read -n 3 prints\n%s", text)
		}
		if text := daybook(t, exitOK, "get", "shop", "--data", dir, "--key", "b"); lines(text) != 1 || !strings.Contains(text, `{"n":49}`) {
			t.Errorf("get prints\n%s", text)
		}
		if text := daybook(t, exitOK, "get", "shop", "--data", dir, "--key", "a", "--history"); lines(text) != 50 || strings.Index(text, `{"n":0}`) > strings.Index(text, `{"n":49}`) {
			t.Errorf("get --history prints\n%s", text)
		}
		daybook(t, exitFailed, "get", "shop", "--data", dir, "--key", "c")
		daybook(t, exitConfig, "get", "shopping", "--data", dir, "--key", "a")
		daybook(t, exitConfig, "journal", "read", dir, "--stream", "shopping")
		daybook(t, exitConfig, "journal", "read", dir, "--stream", "shop", "--partition", "2")
	}
	look()
	daybook(t, exitEnvironment, "journal", "verify", dir) // somebody has it open
	stop()
	look()
	daybook(t, exitOK, "journal", "verify", dir)
	daybook(t, exitEnvironment, "journal", "ls", filepath.Join(dir, "none"))
}

func TestJournalRepairSaysWhatIsLostAndAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, stop := serve(t, dir)
	fill(t, addr, "shop", 50)
	stop()
	if text := daybook(t, exitOK, "journal", "repair", dir); strings.Count(text, "nothing to repair") != 2 {
		t.Errorf("of a whole journal repair says\n%s", text)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "streams", "*", "0", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	whole, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[bytes.Index(damaged, []byte(`{"n":30}`))] ^= 1
	if err := os.WriteFile(segments[0], damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	daybook(t, exitFailed, "journal", "verify", dir)
	text := daybook(t, exitFailed, "journal", "read", dir, "--stream", "shop")
	if strings.Contains(text, `"offset":31`) || !strings.Contains(text, `"offset":29`) || !strings.Contains(text, "partition 0 cannot be read at offsets 30 to 30") || !strings.Contains(text, "at file offset") {
		t.Errorf("read prints\n%s", text)
	}
	var out, told bytes.Buffer
	if code := run(t.Context(), []string{"journal", "read", dir, "--stream", "shop", "--skip-damage"}, &out, &told); code != exitOK || lines(out.String()) != 49 || !strings.Contains(told.String(), "offsets 30 to 30") {
		t.Errorf("read --skip-damage: exit code %d, %d records, and on stderr\n%s", code, lines(out.String()), &told)
	}
	text = daybook(t, exitFailed, "journal", "repair", dir)
	for _, want := range []string{"lost of partition 0: offsets 30 to 49", "--yes", "quarantine-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if now, err := os.ReadFile(segments[0]); err != nil || !bytes.Equal(now, damaged) {
		t.Fatal("without --yes something was changed", err)
	}
	daybook(t, exitConfig, "journal", "repair", dir, "--keep", "all")
	daybook(t, exitFailed, "journal", "repair", dir, "--keep", "newer", "--yes") // there is nothing newer that is known
	daybook(t, exitOK, "journal", "repair", dir, "--yes")
	daybook(t, exitOK, "journal", "verify", dir)
	_, stop = serve(t, dir)
	defer stop()
	if text := daybook(t, exitOK, "journal", "read", dir, "--stream", "shop"); lines(text) != 30 {
		t.Errorf("after the repair there are %d records, want 30:\n%s", lines(text), text)
	}
}

func TestVerifyWorksWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, stop := serve(t, dir)
	fill(t, addr, "shop", 5)
	stop()
	readOnly(t, dir)
	for _, verb := range []string{"verify", "dump", "ls"} {
		daybook(t, exitOK, "journal", verb, dir)
	}
	if text := daybook(t, exitOK, "journal", "read", dir, "--stream", "shop"); lines(text) != 5 {
		t.Errorf("read prints\n%s", text)
	}
}

// A pipeline file alone makes its stream one in which keys are found.
func TestASourceAsksForAKeyIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listen := freeAddress(t)
	file := write(t, "version: 1\npipeline: p\njournal: {dir: "+dir+"}\nsources:\n  - {name: app, stream: app.events, index: [key, tag], http: {listen: "+
		`"`+listen+`"`+", path: /collect, id_field: id, key_field: who}}\n")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"run", file}, io.Discard, io.Discard) }()
	post := func() error {
		r, err := http.Post("http://"+listen+"/collect", "application/json", strings.NewReader(`[{"id":"1","who":"ann","n":1},{"id":"2","who":"bob","n":2},{"id":"3","who":"ann","n":3}]`))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode/100 != 2 {
			return fmt.Errorf("answer %s", r.Status)
		}
		return nil
	}
	deadline := time.Now().Add(30 * time.Second)
	for err := post(); err != nil; err = post() {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if text := daybook(t, exitOK, "get", "app.events", "-f", file, "--key", "ann"); !strings.Contains(text, `"n":3`) {
		t.Errorf("get prints\n%s", text)
	}
	if text := daybook(t, exitOK, "get", "app.events", "-f", file, "--key", "ann", "--history"); lines(text) != 2 {
		t.Errorf("get --history prints\n%s", text)
	}
	cancel()
	<-ended
	var held []struct {
		Pipeline string
		Running  bool
		Sources  []struct {
			Source string
			Ends   map[string]int64
		}
	}
	text := daybook(t, exitOK, "status", "-f", file, "--json")
	if err := json.Unmarshal([]byte(text), &held); err != nil || len(held) != 1 || held[0].Running || len(held[0].Sources) != 1 || held[0].Sources[0].Ends["0"] != 3 {
		t.Errorf("%v in what status shows of what does not run\n%s", err, text)
	}
	if text := daybook(t, exitOK, "status", "-f", file); !strings.Contains(text, "app: position ") {
		t.Errorf("status shows\n%s", text)
	}
}

// A pipeline that runs elsewhere is looked at through the brokers of its journal, whatever its file says of a folder.
func TestStatusOfAJournalAtBrokers(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, t.TempDir())
	defer stop()
	fill(t, addr, "app.events", 5)
	fill(t, addr, "daybook.late.shop.archive", 1)
	text := daybook(t, exitOK, "status", "-f", write(t, good), "--brokers", addr)
	if !strings.Contains(text, "archive: 10 offsets behind, 0 dead letters, 2 late") {
		t.Errorf("status shows\n%s", text)
	}
}
