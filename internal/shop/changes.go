package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// change is what a line of shop.changes holds.
type change struct {
	Op     string          `json:"op"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Source struct {
		Table string `json:"table"`
	} `json:"source"`
}

// CompareChanges holds the changes in the files below a folder against the database, and returns how many there are. Each
// has to begin with the row that the one before it has left: then none is missing, doubled or out of its row's order; in
// the end the rows are those of the tables, and there are as many changes as the statements since `since` (of
// Database.Changes) have made, when the snapshot was complete.
func (s *Shop) CompareChanges(ctx context.Context, dir string, since int) (int, error) {
	files, err := ReadFiles(dir)
	if err != nil {
		return 0, err
	}
	n, rows := 0, map[string]map[string][]byte{"orders": {}, "customers": {}}
	for _, partition := range slices.Sorted(maps.Keys(files)) {
		for i, line := range files[partition] {
			var c change
			err := json.Unmarshal([]byte(line), &c)
			if err == nil {
				err = c.follow(rows[c.Source.Table])
			}
			if err != nil {
				return 0, fmt.Errorf("partition %s, line %d: %w: %s", partition, i+1, err, line)
			}
			if c.Op != "r" {
				n++
			}
		}
	}
	for table, left := range rows {
		if err := s.compareLeft(ctx, table, left); err != nil {
			return 0, err
		}
	}
	if want := s.Database.Changes - since; n != want {
		return 0, fmt.Errorf("the statements made %d changes, the files have %d", want, n)
	}
	return n, nil
}

// follow applies the change to the rows of its table, by key.
func (c *change) follow(rows map[string][]byte) error {
	if rows == nil {
		return errors.New("a table that the shop does not have")
	}
	image := c.After
	if c.Op == "d" {
		image = c.Before
	}
	var key struct {
		ID json.Number `json:"id"`
	}
	if err := json.Unmarshal(image, &key); err != nil {
		return err
	}
	id := key.ID.String()
	was, there := rows[id]
	switch c.Op {
	case "r", "c":
		if there {
			return fmt.Errorf("the row is there already, as %s", was)
		}
	case "u", "d":
		if !bytes.Equal(was, c.Before) {
			return fmt.Errorf("the row was %s", was)
		}
	default:
		return errors.New("an operation that nobody has made")
	}
	if c.Op == "d" {
		delete(rows, id)
	} else {
		rows[id] = c.After
	}
	return nil
}

// compareLeft holds the rows that all changes have left against their table.
func (s *Shop) compareLeft(ctx context.Context, table string, left map[string][]byte) error {
	want, err := s.Database.rows(ctx, "SELECT * FROM shop."+table)
	if err != nil {
		return err
	}
	got := map[string]map[string]string{}
	for id, row := range left {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(row, &fields); err != nil {
			return err
		}
		got[id] = textOf(fields)
	}
	if err := differ(want, got); err != nil {
		return fmt.Errorf("MySQL shop.%s and the changes in files: %w", table, err)
	}
	return nil
}
