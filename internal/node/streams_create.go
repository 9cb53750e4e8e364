package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
)

// CreateStream makes a stream in a journal. Settings are NAME=VALUE by their names in Kafka.
func CreateStream(ctx context.Context, where Where, s pipeline.NewStream, settings []string, log *slog.Logger) (err error) {
	if s.Settings, err = parseSettings(settings); err != nil {
		return err
	}
	if s.Journals > s.Partitions {
		return fmt.Errorf("%w: --journals %d of --partitions %d: each journal needs one at least", ErrConfig, s.Journals, s.Partitions)
	}
	c, err := where.config()
	if err != nil {
		return err
	}
	j, done, err := beside(ctx, c, log)
	if err != nil {
		return err
	}
	defer closing(done, &err)
	return j.Create(ctx, s)
}

func parseSettings(list []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%w: --set %q is not NAME=VALUE", ErrConfig, text)
		}
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("%w: --set %s is given twice", ErrConfig, name)
		}
		settings[name] = value
	}
	return settings, nil
}
