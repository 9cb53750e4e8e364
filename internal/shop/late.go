package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Late returns the values of the records that came too late for a sink of the shop's pipeline, by the streams that they are of.
func (b Binary) Late(ctx context.Context, file, sink string) (map[string][]string, error) {
	stream := "daybook.late.shop." + sink
	streams, err := b.Once(ctx, "streams", "-f", file, "--all")
	if err != nil || !strings.Contains(streams, stream+" ") {
		return nil, err
	}
	printed, err := b.Once(ctx, "tail", stream, "-f", file, "--from", "start", "--once", "--json")
	if err != nil {
		return nil, err
	}
	late := map[string][]string{}
	for line := range strings.Lines(printed) {
		var r struct {
			Headers map[string]string `json:"headers"`
			Value   json.RawMessage   `json:"value"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("what tail prints: %w: %s", err, line)
		}
		origin := r.Headers["daybook.origin.stream"]
		late[origin] = append(late[origin], string(r.Value))
	}
	return late, nil
}
