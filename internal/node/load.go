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
	return loaded(pipeline.LoadFile(path, Kinds()))
}

// lookAt is Load for the verbs that only look: whoever asks for the status at night does
// not have the worker's environment.
func lookAt(path string) (*pipeline.File, error) {
	return loaded(pipeline.LookAtFile(path, Kinds()))
}

func loaded(f *pipeline.File, err error) (*pipeline.File, error) {
	return f, readable("pipeline", err)
}

// readable makes what keeps a file from being read an error of the configuration.
func readable(kind string, err error) error {
	var missing *fs.PathError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w: reading %s file: %w", ErrConfig, kind, missing)
	}
	return err
}
