// Package sinks lists the kinds of sink.
package sinks

import (
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/elasticsearch"
	"github.com/daybook-data/daybook/sinks/file"
	"github.com/daybook-data/daybook/sinks/redis"
)

// All returns the kinds of sink, in the order of the documents.
func All() []pipeline.SinkSpec {
	return []pipeline.SinkSpec{
		elasticsearch.Spec(),
		redis.Spec(),
		file.Spec(),
	}
}
