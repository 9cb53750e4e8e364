package elasticsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/daybook-data/daybook/pipeline"
)

// onlyWhatMatters keeps the answer to a bulk request short: a status for each operation,
// and why it failed.
var onlyWhatMatters = []string{"errors", "items.*.status", "items.*.error"}

// bulkAnswer is the answer to a bulk request: a result for each operation, in order.
type bulkAnswer struct {
	Errors bool
	Items  []struct{ Index, Delete *result }
}

// result is what became of one operation.
type result struct {
	Status int
	Error  *cause
}

// apply sends operations, in one request if the server takes it. It returns those that
// are to be sent again, in order, with the reason; versions make their order safe.
func (s *Sink) apply(ctx context.Context, operations []operation) (left []operation, err error) {
	body := s.body[:0]
	s.body = nil
	sent := make([]operation, 0, len(operations))
	for i := range operations {
		o := operations[i]
		index, err := s.indices.prepareFor(ctx, &o)
		if err != nil {
			return operations, err
		}
		if o.Version < index.truncated(o.Table) {
			s.superseded.Add(1)
			continue
		}
		sent = append(sent, o)
		body = appendOperation(body, &o, index.name)
	}
	if len(sent) == 0 {
		return nil, nil
	}
	request, err := s.client.bulk(body)
	if err != nil {
		return sent, fmt.Errorf("compressing: %w", err)
	}
	a, err := s.client.do(ctx, request)
	switch {
	case err != nil:
		return sent, fmt.Errorf("writing: %w", err)
	case a.status == http.StatusRequestEntityTooLarge:
		return s.split(ctx, sent, len(body))
	case a.status >= 300:
		return sent, fmt.Errorf("writing: %w", newAnswerError(a))
	}
	results, err := readResults(a.body, sent)
	if err != nil {
		return sent, fmt.Errorf("writing: %w", err)
	}
	// Only now has the request been read to its end: after a failure the transport may
	// still be sending it.
	s.body = body
	return s.settle(ctx, sent, results)
}

// split sends in two halves what was too large for the server in one.
func (s *Sink) split(ctx context.Context, operations []operation, size int) (left []operation, err error) {
	if len(operations) == 1 {
		s.reject(operations[0].item, fmt.Sprintf("the document makes a request of %d bytes, more than the server takes (http.max_content_length, or the limit of a proxy before it)", size))
		return nil, nil
	}
	s.limit = int64(size) / 2
	half := len(operations) / 2
	if left, err = s.apply(ctx, operations[:half]); err != nil {
		return append(left, operations[half:]...), err
	}
	return s.apply(ctx, operations[half:])
}

// readResults decodes the answer to a bulk request. An answer that does not speak of all
// operations is none.
func readResults(body []byte, sent []operation) ([]*result, error) {
	var answer bulkAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(answer.Items) != len(sent) {
		return nil, fmt.Errorf("the server answered with %d results for %d operations", len(answer.Items), len(sent))
	}
	results := make([]*result, len(sent))
	for i, item := range answer.Items {
		r := item.Index
		if sent[i].kind == remove {
			r = item.Delete
		}
		if r == nil || r.Status == 0 {
			return nil, fmt.Errorf("result %d of the server's answer is not one of the operation that was sent", i)
		}
		results[i] = r
	}
	return results, nil
}

// settle judges each operation by its result. The error is the first reason to send one
// again, or a StopError.
func (s *Sink) settle(ctx context.Context, sent []operation, results []*result) (left []operation, err error) {
	for i, r := range results {
		o := sent[i]
		verdict := judge(o.kind, r)
		if verdict == superseded {
			s.superseded.Add(1)
			if e := s.checkNewer(ctx, &o, r); e != nil {
				left, err = append(left, o), worse(err, e)
			}
			continue
		}
		switch verdict {
		case done:
			s.applied.Add(1)
		case refused:
			s.reject(o.item, fmt.Sprintf("elasticsearch, index %s, id %q: %s", o.index, o.id, r.Error))
		case again:
			s.retried.Add(1)
			left, err = append(left, o), worse(err, fmt.Errorf("index %s, id %q: %w", o.index, o.id, &answerError{status: r.Status, cause: *r.Error}))
		case gone:
			left, err = append(left, o), worse(err, s.indices.lost(o.index, r.Error.String()))
		}
	}
	return left, err
}

// worse returns the error that counts of two: a StopError, else the first.
func worse(first, second error) error {
	if first == nil || errors.As(second, new(*pipeline.StopError)) && !errors.As(first, new(*pipeline.StopError)) {
		return second
	}
	return first
}
