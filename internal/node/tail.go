package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/daybook-data/daybook/pipeline"
)

// TailOptions are those of `daybook tail`.
type TailOptions struct {
	Where  Where
	Stream string
	From   string
	Filter string
	JSON   bool
	Once   bool
	Limit  int
	Out    io.Writer
	Log    *slog.Logger
}

// errEnough ends a tail at its limit.
var errEnough = errors.New("limit reached")

// Tail prints the records of a stream until ctx ends, which is no error, or what it was
// asked for is printed.
func Tail(ctx context.Context, o TailOptions) (err error) {
	place, err := pipeline.ParsePlace(o.From)
	if err != nil {
		return fmt.Errorf("%w: --from: %w", ErrConfig, err)
	}
	keep, err := filter(o.Filter)
	if err != nil {
		return fmt.Errorf("%w: --where: %w", ErrConfig, err)
	}
	c, err := o.Where.config()
	if err != nil {
		return err
	}
	j, done, err := beside(ctx, c, o.Log)
	if err != nil {
		return err
	}
	defer closing(done, &err)
	from, err := j.Resolve(ctx, place, o.Stream)
	if err != nil {
		return err
	}
	var to map[pipeline.Partition]int64
	if o.Once {
		if to, err = j.Ends(ctx, o.Stream); err != nil {
			return err
		}
	}
	printed := 0
	err = j.Follow(ctx, o.Stream, from, to, func(r pipeline.Record) error {
		if ok, err := keep(r); err != nil || !ok {
			return err
		}
		if err := printRecord(o.Out, r, o.JSON); err != nil {
			return err
		}
		if printed++; printed == o.Limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) || ctx.Err() != nil {
		return nil
	}
	return err
}

// filter returns the test that an expression stands for; a change passes if its row does,
// before or after.
func filter(expression string) (func(pipeline.Record) (bool, error), error) {
	if expression == "" {
		return func(pipeline.Record) (bool, error) { return true, nil }, nil
	}
	where, err := pipeline.CompileWhere(expression)
	if err != nil {
		return nil, err
	}
	return func(r pipeline.Record) (bool, error) {
		d, err := pipeline.NewDelivery(r, 0)
		if err != nil {
			return false, nil // no image to judge: it can't match
		}
		keep, err := where.Apply(&d)
		return keep && err == nil, nil
	}, nil
}

// shown is a record as --json prints it.
type shown struct {
	Stream    string            `json:"stream"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Time      time.Time         `json:"time"`
	Stamp     time.Time         `json:"stamp"`
	Source    string            `json:"source,omitempty"`
	Position  string            `json:"position,omitempty"`
	Table     string            `json:"table,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Key       any               `json:"key"`
	Value     any               `json:"value"`
}

func printRecord(w io.Writer, r pipeline.Record, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintf(w, "%s/%d@%d %s %s %s\n", r.Stream, r.Partition, r.Offset,
			time.UnixMicro(r.Time).UTC().Format("2006-01-02T15:04:05.000000Z"), orDash(r.Key), orDash(r.Value))
		return err
	}
	s := shown{
		Stream: r.Stream, Partition: r.Partition, Offset: r.Offset,
		Time: time.UnixMicro(r.Time).UTC(), Stamp: time.UnixMicro(r.Stamp).UTC(),
		Source: r.Source, Position: r.Position, Table: r.Table, Key: content(r.Key), Value: content(r.Value),
	}
	for _, h := range r.Headers {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[h.Key] = string(h.Value)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}

// content is bytes as they go into JSON best: JSON as it is, text as text, else base64.
func content(b []byte) any {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return json.RawMessage(b)
	case utf8.Valid(b):
		return string(b)
	}
	return b
}

func orDash(b []byte) string {
	if b == nil {
		return "-"
	}
	return string(b)
}
