package redis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/pipeline"
)

// appendHash appends the fields of a row's hash to a command: name, value, ...
func appendHash(args []any, row *pipeline.Row, only []string) ([]any, error) {
	var bad error
	err := row.Members(func(name, value []byte) {
		if len(only) > 0 && !slices.Contains(only, string(name)) {
			return
		}
		text, ok, err := fieldText(value)
		if err != nil && bad == nil {
			bad = fmt.Errorf("column %q: %w", name, err)
		}
		if ok {
			args = append(args, name, text)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the row: %w", err)
	}
	return args, bad
}

// fieldText returns a JSON value as the text of a field: a text without its quotes, all
// else as it stands. A null has none.
func fieldText(value []byte) (text []byte, ok bool, err error) {
	switch {
	case value[0] == 'n':
		return nil, false, nil
	case value[0] != '"':
		return value, true, nil
	case bytes.IndexByte(value, '\\') < 0:
		return value[1 : len(value)-1], true, nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, false, err
	}
	return []byte(s), true, nil
}
