// Package pipeline moves records: from sources into the journal and from the
// journal to sinks. It knows the journal only as a Kafka client does.
package pipeline
