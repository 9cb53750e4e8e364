package node

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks"
	"github.com/daybook-data/daybook/sources"
)

// Kinds returns every kind of source and sink that a pipeline file may name.
func Kinds() pipeline.Kinds {
	return pipeline.Kinds{Sources: sources.All(), Sinks: sinks.All()}
}

// Load reads and checks one pipeline file. It opens no connection.
func Load(path string) (*pipeline.File, error) {
	f, err := pipeline.LoadFile(path, Kinds())
	var missing *fs.PathError
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return f, err
}
