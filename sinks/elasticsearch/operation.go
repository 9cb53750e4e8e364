package elasticsearch

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/daybook-data/daybook/pipeline"
)

// item is a delivery that is not yet durable.
type item struct {
	pipeline.Delivery
	refused bool // it is among the rejected already
}

// place is where a document stands.
type place struct {
	index   string // as the template gives it; see indexName
	id      string
	routing string
}

// operation is one step towards a delivery: a document is put or deleted, or a table
// emptied.
type operation struct {
	*item
	place
	kind kind
}

type kind byte

const (
	put kind = iota
	remove
	truncate
)

// plan returns the operations that a delivery asks for, in the order in which they are to
// happen. The error is a reason to reject the delivery.
func (s *Sink) plan(it *item) ([]operation, error) {
	switch it.Op {
	case pipeline.OpTruncate:
		return []operation{{item: it, kind: truncate}}, nil
	case pipeline.OpDelete:
		at, err := s.placeOf(it, &it.Before)
		if err != nil {
			return nil, fmt.Errorf("finding the document to delete: %w", err)
		}
		if s.places.id == nil {
			return nil, errors.New("finding the document to delete: with an empty `id` documents have no identity")
		}
		return []operation{{item: it, kind: remove, place: at}}, nil
	}
	if it.After.Absent() {
		return nil, errors.New("the record is no JSON object, so it can't be a document")
	}
	at, err := s.placeOf(it, &it.After)
	if err != nil {
		return nil, err
	}
	write := operation{item: it, kind: put, place: at}
	if it.Op == pipeline.OpUpdate && !it.Before.Absent() {
		// A before image that gives no place was never written.
		old, err := s.placeOf(it, &it.Before)
		if err == nil && old != at {
			return []operation{{item: it, kind: remove, place: old}, write}, nil
		}
	}
	return []operation{write}, nil
}

// placeOf renders the place of a row's image.
func (s *Sink) placeOf(it *item, row *pipeline.Row) (at place, err error) {
	if at.index, err = s.places.index.Render(&it.Delivery, row, s.env.Name); err != nil {
		return at, err
	}
	if _, err := indexName(at.index); err != nil {
		return at, err
	}
	if s.places.id == nil {
		at.id = it.Stream + "-" + strconv.Itoa(int(it.Partition)) + "-" + strconv.FormatInt(it.Offset, 10)
	} else if at.id, err = s.places.id.Render(&it.Delivery, row, s.env.Name); err != nil {
		return at, err
	}
	if err := checkID("id", at.id); err != nil || s.places.routing == nil {
		return at, err
	}
	if at.routing, err = s.places.routing.Render(&it.Delivery, row, s.env.Name); err != nil {
		return at, err
	}
	return at, checkID("routing", at.routing)
}

// size is about what the operation takes in a request.
func (o *operation) size() int {
	n := 128 + len(o.index) + len(o.id) + len(o.routing)
	if o.kind == put {
		n += len(o.After.JSON())
	}
	return n
}
