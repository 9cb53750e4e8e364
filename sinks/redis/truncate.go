package redis

import (
	"context"
	"errors"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
)

// truncate does what the section says about TRUNCATE TABLE. All changes before it are
// applied when it is called.
func (s *Sink) truncate(ctx context.Context, it *item) error {
	switch s.config.Truncate {
	case "ignore":
		return nil
	case "stop":
		return &pipeline.StopError{
			Code: "truncate", Where: "table " + it.Table, Err: errors.New("the table was truncated and `truncate: stop` is set"),
			Fix: "set `truncate: delete` to remove its rows from redis, or `truncate: ignore` to keep them",
		}
	}
	if it.Version < s.target.truncated[it.owner()] {
		return nil
	}
	// The mark comes first: what another worker still holds of the old table is refused
	// from then on, and a crash during the scan repeats it.
	if err := s.target.setTruncated(ctx, it.owner(), it.Version); err != nil {
		return s.failure("truncating "+it.Table, err)
	}
	return s.removeOwned(ctx, it)
}

// removeOwned removes all rows of the item's table that are older than the item. It
// looks at the version keys, which say whose row each is: keys that Daybook has not
// written are not touched.
func (s *Sink) removeOwned(ctx context.Context, it *item) error {
	var cursor uint64
	for {
		keys, next, err := s.client.Scan(ctx, cursor, reserved+"v[:=]*", 1000).Result()
		if err != nil {
			return s.failure("looking for rows of "+it.Table, err)
		}
		if err := s.removeAmong(ctx, it, keys); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// removeAmong removes those of the rows, named by their version keys, that are the table's.
func (s *Sink) removeAmong(ctx context.Context, it *item, versionKeys []string) error {
	if len(versionKeys) == 0 {
		return nil
	}
	versions, err := s.client.MGet(ctx, versionKeys...).Result()
	if err != nil {
		return s.failure("reading versions of "+it.Table, err)
	}
	var removes []change
	for i, v := range versions {
		text, _ := v.(string)
		version, owner, _ := strings.Cut(text, " ")
		key, ok := rowKey(versionKeys[i])
		if ok && owner == s.target.owned(it) && version <= hexVersion(it.Version) {
			removes = append(removes, change{item: it, kind: remove, key: key})
		}
	}
	if len(removes) == 0 {
		return nil
	}
	_, err = s.apply(ctx, removes)
	return err
}
