package redis

import (
	"fmt"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
)

// kind is what a change does to its key; the words are those of apply.lua.
type kind string

const (
	putHash   kind = "hash"
	putString kind = "string"
	remove    kind = "delete"
	truncate  kind = "truncate"
)

// item is a delivery that is not yet durable.
type item struct {
	pipeline.Delivery
	refused bool // it is among the rejected already
}

// change is one step towards a delivery: one key is put or removed, or a table emptied.
type change struct {
	*item
	kind kind
	key  string // empty for truncate
}

// plan returns the changes that a delivery asks for, in the order in which they are to
// happen. The error is a reason to reject the delivery.
func (s *Sink) plan(it *item) ([]change, error) {
	switch it.Op {
	case pipeline.OpTruncate:
		return []change{{item: it, kind: truncate}}, nil
	case pipeline.OpDelete:
		key, err := s.keyOf(it, &it.Before)
		if err != nil {
			return nil, fmt.Errorf("finding the key to delete: %w", err)
		}
		return []change{{item: it, kind: remove, key: key}}, nil
	}
	if it.After.Absent() {
		return nil, fmt.Errorf("the record is no JSON object: a %s can't hold it", s.config.Type)
	}
	key, err := s.keyOf(it, &it.After)
	if err != nil {
		return nil, err
	}
	put := change{item: it, kind: kind(s.config.Type), key: key}
	if it.Op == pipeline.OpUpdate && !it.Before.Absent() {
		// A before image that gives no key was never written.
		old, err := s.keyOf(it, &it.Before)
		if err == nil && old != key {
			return []change{{item: it, kind: remove, key: old}, put}, nil
		}
	}
	return []change{put}, nil
}

// keyOf renders the key of a row's image.
func (s *Sink) keyOf(it *item, row *pipeline.Row) (string, error) {
	key, err := s.template.Render(&it.Delivery, row, s.env.Name)
	if err != nil {
		return "", err
	}
	if key == "" {
		return "", fmt.Errorf("%s: the key is empty", s.template)
	}
	if strings.HasPrefix(key, reserved) {
		return "", fmt.Errorf("key %q: keys that begin with %s are Daybook's own", key, reserved)
	}
	return key, nil
}

// owner says where a version's row comes from.
func (it *item) owner() string { return it.Stream + " " + it.Table }

// size is about what the change takes on its way.
func (c *change) size() int { return 256 + len(c.key)*2 + len(c.After.JSON()) }
