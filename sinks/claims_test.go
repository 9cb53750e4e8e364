package sinks_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks"
)

func TestTwoSinksDoNotFillOnePlace(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want string
	}{
		"one path":                {`streams: [s], file: {path: "out/all.ndjson"}`, `streams: [t], file: {path: "out//all.ndjson"}`, "x.yaml:6"},
		"one path of a stream":    {`streams: [s, t], file: {path: "out/{stream}.ndjson"}`, `streams: [t], file: {path: "out/{stream}.ndjson"}`, "out/t.ndjson as well"},
		"a path of each stream":   {`streams: [s], file: {path: "out/{stream}.ndjson"}`, `streams: [t], file: {path: "out/{stream}.ndjson"}`, ""},
		"a path of each":          {`streams: [s], file: {path: "out/a.ndjson"}`, `streams: [s], file: {path: "out/b.ndjson"}`, ""},
		"what they claim is none": {`streams: [s], redis: {addr: "h:1", key: "{key}"}`, `streams: [s], redis: {addr: "h:1", key: "{key}"}`, ""},
	} {
		text := "version: 1\npipeline: p\njournal: {dir: d}\nsinks:\n  - {name: a, " + c.a + "}\n  - {name: b, " + c.b + "}\n"
		err := configs.Decode("x.yaml", []byte(text), pipeline.NewFile(pipeline.Kinds{Sinks: sinks.All()}))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
