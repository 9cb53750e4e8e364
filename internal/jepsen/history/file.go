package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Write writes a history, a line an operation.
func Write(w io.Writer, ops []Op) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for i := range ops {
		if err := enc.Encode(&ops[i]); err != nil {
			return fmt.Errorf("writing operation %d: %w", i, err)
		}
	}
	return out.Flush()
}

// WriteFile writes a history to a new file.
func WriteFile(path string, ops []Op) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(Write(f, ops), f.Close())
}

// ReadAll reads what Write wrote.
func ReadAll(r io.Reader) ([]Op, error) {
	var ops []Op
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		var op Op
		err := dec.Decode(&op)
		if errors.Is(err, io.EOF) {
			return ops, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading operation %d: %w", len(ops), err)
		}
		ops = append(ops, op)
	}
}
