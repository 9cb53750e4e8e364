package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The indexes that a source can ask for.
const (
	indexKey = "key"
	indexTag = "tag"
)

// keepIndexes switches indexes of a stream on. A journal makes them of what it holds.
func (j *Journal) keepIndexes(ctx context.Context, stream string, indexes []string) error {
	if len(indexes) == 0 {
		return nil
	}
	var settings []kadm.AlterConfig
	on := "true"
	for _, index := range indexes {
		settings = append(settings, kadm.AlterConfig{Op: kadm.SetConfig, Name: "daybook." + index + ".index", Value: &on})
	}
	answers, err := j.admin.AlterTopicConfigs(ctx, settings, stream)
	if err == nil {
		var answer kadm.AlterConfigsResponse
		if answer, err = answers.On(stream, nil); err == nil {
			err = answer.Err
		}
	}
	if errors.Is(err, kerr.InvalidConfig) {
		return &StopError{
			Code: "no-index", Where: "stream " + stream, Err: fmt.Errorf("the journal keeps no index: %w", err),
			Fix: "leave `index` out: only a Daybook has indexes, not a Kafka",
		}
	}
	if err != nil {
		return fmt.Errorf("switching on the indexes of stream %s: %w", stream, err)
	}
	return nil
}
