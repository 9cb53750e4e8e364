package pipeline

import (
	"context"
	"log/slog"
)

type deliver struct{}

func newDeliver(j *Journal, f *File, entry *SinkEntry, once bool, log *slog.Logger) (*deliver, error) {
	return &deliver{}, nil
}

func (d *deliver) run(ctx context.Context) error { return nil }
