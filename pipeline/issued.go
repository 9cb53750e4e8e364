package pipeline

import (
	"context"
	"fmt"
)

// Issued tells a sink whether a version that it finds at its destination is one of its
// streams' (Record.Version), or was put there by something else. It asks the streams
// only about versions above those it knows of. Not safe for concurrent use.
type Issued struct {
	env  SinkEnv
	upTo uint64
}

// NewIssued returns an Issued of the sink with these surroundings.
func NewIssued(env SinkEnv) *Issued { return &Issued{env: env} }

// Has reports whether the streams have issued a version as high as this one, and the
// highest that they are known to have reached. The error is that of the journal.
func (i *Issued) Has(ctx context.Context, version uint64) (has bool, upTo uint64, err error) {
	if version <= i.upTo {
		return true, i.upTo, nil
	}
	stamp, err := i.env.Highest(ctx)
	if err != nil {
		return false, i.upTo, fmt.Errorf("asking how far the streams are: %w", err)
	}
	i.upTo = (&Record{Stamp: stamp}).Version(i.env.Epoch)
	return version <= i.upTo, i.upTo, nil
}
