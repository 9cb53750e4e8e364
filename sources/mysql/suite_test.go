package mysql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/mysql"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// origin is a table whose inserts are the changes. Rows written before the source has
// fixed where it starts come by the snapshot; a row written later may come twice, as
// a create and, where a crash cut the snapshot, as a read. The suite counts changes,
// so of those it takes the creates.
type origin struct {
	*rig
	next   atomic.Int64
	mu     sync.Mutex // guards the fields below
	source *mysql.Source
	before int64 // the last id written before the first Open; -1 before it
}

func newOrigin(t *testing.T, server *services.MySQL) sourcetest.Origin {
	r := newRig(t, server)
	r.exec("CREATE TABLE o (id INT PRIMARY KEY, v VARCHAR(20))")
	return &origin{rig: r, before: -1}
}

func (o *origin) Open(t *testing.T, once bool) pipeline.Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.source = o.rig.source(once)
	if o.before < 0 {
		o.before = o.next.Load()
	}
	return o.source
}

// started waits until a source that was opened has fixed where it starts.
func (o *origin) started(ctx context.Context) error {
	for {
		o.mu.Lock()
		s := o.source
		o.mu.Unlock()
		if s == nil || s.Report().Detail != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (o *origin) Write(ctx context.Context, n int) ([]string, error) {
	var ids []string
	if err := o.started(ctx); err != nil {
		return nil, err
	}
	for n > 0 {
		tx, err := o.db.BeginTx(ctx, nil)
		if err != nil {
			return ids, err
		}
		for range min(n, 1+rand.IntN(20)) {
			id := o.next.Add(1)
			if _, err := tx.ExecContext(ctx, "INSERT INTO o VALUES (?, 'x')", id); err != nil {
				return ids, err
			}
			ids = append(ids, fmt.Sprint(id))
			n--
		}
		if err := tx.Commit(); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func (o *origin) ID(r pipeline.Record) string {
	var key struct{ ID int64 }
	if json.Unmarshal(r.Key, &key) != nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Contains(r.Value, []byte(`"op":"r"`)) && key.ID > o.before {
		return ""
	}
	return strconv.FormatInt(key.ID, 10)
}

func (o *origin) Disturb(ctx context.Context, rng *rand.Rand) error {
	_, err := o.db.ExecContext(ctx, "FLUSH BINARY LOGS")
	return err
}

func TestSourceSuite(t *testing.T) {
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		sourcetest.Run(t, func(t *testing.T) sourcetest.Origin { return newOrigin(t, pool.MySQL(t)) }, sourcetest.Options{})
	})
	t.Run("mysql without GTIDs", func(t *testing.T) {
		t.Parallel()
		server := services.MySQLForTest(t, services.Options{Variant: "nogtid"})
		sourcetest.Run(t, func(t *testing.T) sourcetest.Origin { return newOrigin(t, server) }, sourcetest.Options{})
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		sourcetest.Run(t, func(t *testing.T) sourcetest.Origin { return newOrigin(t, pool.MariaDB(t)) }, sourcetest.Options{})
	})
}
