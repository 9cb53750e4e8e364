package pipeline

import (
	"context"
)

type deliver struct{}

func newDeliver(j *Journal, f *File, entry *SinkEntry, o WorkerOptions) (*deliver, error) {
	return &deliver{}, nil
}

func (d *deliver) run(ctx context.Context) error { return nil }
