package node_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/internal/shop"
	"github.com/daybook-data/daybook/pipeline"
)

// A consumer of one of fifty tables that were loaded one after the other gets all of that
// table, and little of the others: sources keep them apart.
func TestAConsumerOfOneTableDoesNotReadTheRest(t *testing.T) {
	t.Parallel()
	my := services.MySQLForTest(t, services.Options{})
	db, err := sql.Open("mysql", my.DSN("", "app"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec := func(query string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%.100s: %v", query, err)
		}
	}
	const tables, rows = 50, 600
	exec("CREATE DATABASE fifty")
	load := func() { // rows of about 300 bytes that do not compress to nothing
		for i := range tables {
			row := "(CONCAT(UUID(), UUID(), UUID(), UUID(), UUID(), UUID()))"
			exec(fmt.Sprintf("INSERT INTO fifty.t%d (a) VALUES %s", i, strings.Repeat(row+",", rows-1)+row))
		}
	}
	for i := range tables {
		exec(fmt.Sprintf("CREATE TABLE fifty.t%d (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(250))", i))
	}
	load() // for the snapshot
	binary := shop.Binary{Path: binaryPath, Dir: t.TempDir()}
	addr, file := startServer(t), filepath.Join(binary.Dir, "fifty.yaml")
	text := fmt.Sprintf(`version: 1
pipeline: fifty
journal: {brokers: [%q]}
sources:
  - name: db
    stream: fifty
    index: [tag]
    mysql: {addr: %q, user: repl, password: {env: SHOP_DB_PASSWORD}, tables: ["fifty.*"], start: snapshot}
`, addr, my.Addr)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		if out, err := binary.Once(t.Context(), "run", file, "--once"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run()
	load() // for the binlog
	run()

	const table = "fifty.t7"
	whole, all := readAll(t, addr, "fifty", "fifty")
	want := ofTable(all, table)
	if len(want) != 2*rows {
		t.Fatalf("the stream holds %d rows of %s, want %d", len(want), table, 2*rows)
	}
	// The index comes behind the records; until then all is served.
	err = shop.Until(t.Context(), time.Minute, func(context.Context) error {
		part, some := readAll(t, addr, "fifty", "fifty@"+table)
		if diff := cmp.Diff(want, ofTable(some, table)); diff != "" {
			t.Fatalf("rows of %s by its tag (-want +got):\n%.2000s", table, diff)
		}
		if part > whole/4 { // about 1/20, or 1/5 where the disk is so slow that no batch is ended early
			return fmt.Errorf("a consumer of one of %d tables is sent %d of %d bytes", tables, part, whole)
		}
		t.Logf("a consumer of one of %d tables is sent %d of %d bytes", tables, part, whole)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// ofTable returns places of the records of a table: offset and key.
func ofTable(records []*kgo.Record, table string) (places []string) {
	for _, r := range records {
		for _, h := range r.Headers {
			if h.Key == pipeline.HeaderTable && string(h.Value) == table {
				places = append(places, fmt.Sprintf("%d %s", r.Offset, r.Key))
			}
		}
	}
	return places
}

// sent counts the bytes of batches that a client was sent.
type sent struct{ bytes atomic.Int64 }

func (s *sent) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	s.bytes.Add(int64(m.CompressedBytes))
}

// readAll reads the one partition of a stream, or of one of its tags, to its end.
func readAll(t *testing.T, addr, stream, topic string) (bytes int64, records []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var s sent
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.WithHooks(&s), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(stream, 0)
	// The stream ends with a transaction's marker, which every tag has.
	for {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("reading %s after %d records: %v", topic, len(records), err)
		}
		last := int64(-1)
		fetched.EachRecord(func(r *kgo.Record) {
			last = r.Offset
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
		if last == end.Offset-1 {
			return s.bytes.Load(), records
		}
	}
}
