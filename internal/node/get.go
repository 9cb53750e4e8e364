package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// GetOptions are those of `daybook get`.
type GetOptions struct {
	Where   Where
	Stream  string
	Key     string
	History bool // all records of the key, oldest first; else the last one
	Out     io.Writer
	Log     *slog.Logger
}

// ErrNoRecord says that no record has the key.
var ErrNoRecord = errors.New("no record has that key")

// Get prints the records of a key, found by the stream's key index: from the process that has the folder open, or from
// the folder itself where none has.
func Get(ctx context.Context, o GetOptions) (err error) {
	c, err := o.Where.config()
	if err != nil {
		return err
	}
	if len(c.Brokers) > 0 {
		return fmt.Errorf("%w: records are looked up in the folder of the journal, on its machine: give --data", ErrConfig)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%w: no journal in %s: %w", ErrEnvironment, c.Dir, err)
	}
	conn, running, err := dialSocket(ctx, dir, ownerSocket)
	if err != nil {
		return err
	}
	if running {
		defer conn.Close()
		return askForRecords(ctx, conn, o)
	}
	st, err := openAlone(dir, kafka.Options{}, cluster.Options{}, o.Log)
	if err != nil {
		return err
	}
	defer closing(st.close, &err)
	return lookUp(ctx, st.node, o)
}

// lookUp prints what a node finds.
func lookUp(ctx context.Context, n *cluster.Node, o GetOptions) error {
	order := cluster.NewestFirst
	if o.History {
		order = cluster.OldestFirst
	}
	found := false
	for r, err := range n.Lookup(ctx, o.Stream, []byte(o.Key), order) {
		if err != nil {
			return lookupError(err, o.Stream)
		}
		found = true
		if err := printStored(o.Out, o.Stream, r); err != nil {
			return err
		}
		if !o.History {
			return nil
		}
	}
	if !found {
		return fmt.Errorf("%w: %q in stream %s", ErrNoRecord, o.Key, o.Stream)
	}
	return nil
}

func lookupError(err error, stream string) error {
	if errors.Is(err, metadata.ErrUnknownStream) {
		return fmt.Errorf("%w: no stream %q", ErrConfig, stream)
	}
	if errors.Is(err, cluster.ErrNoKeyIndex) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return err
}

// Trailers of an answer to /records, which begins before its end is known.
const (
	trailerCode  = "Daybook-Exit"
	trailerError = "Daybook-Error"
)

// serveRecords answers for another process what lookUp prints.
func (s *store) serveRecords(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", trailerCode+", "+trailerError)
	w.Header().Set("Content-Type", "application/x-ndjson")
	q := r.URL.Query()
	out := bufio.NewWriterSize(w, 64<<10)
	err := lookUp(r.Context(), s.node, GetOptions{Stream: q.Get("stream"), Key: q.Get("key"), History: q.Get("history") == "true", Out: out})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	code, text := "ok", ""
	switch {
	case errors.Is(err, ErrNoRecord):
		code = "none"
	case errors.Is(err, ErrConfig):
		code = "config"
	case err != nil:
		code = "failed"
	}
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	w.Header().Set(trailerCode, code)
	w.Header().Set(trailerError, url.QueryEscape(text))
}

// askForRecords prints what the process at the other end of a connection finds.
func askForRecords(ctx context.Context, conn net.Conn, o GetOptions) error {
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
	q := url.Values{"stream": {o.Stream}, "key": {o.Key}, "history": {fmt.Sprint(o.History)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daybook/records?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the process that has the journal open: %w", err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(o.Out, answer.Body); err != nil {
		return fmt.Errorf("asking the process that has the journal open: %w", err)
	}
	text, _ := url.QueryUnescape(answer.Trailer.Get(trailerError)) // escaped there
	switch answer.Trailer.Get(trailerCode) {
	case "ok":
		return nil
	case "none":
		return told{ErrNoRecord, text}
	case "config":
		return told{ErrConfig, text}
	case "":
		return fmt.Errorf("the process that has the journal open ended its answer early (%s)", answer.Status)
	}
	return errors.New(text)
}

// told is an error that another process has worded.
type told struct {
	kind error
	text string
}

func (t told) Error() string { return t.text }
func (t told) Unwrap() error { return t.kind }
