package sources_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources"
)

func TestIdsAreKeptForAsLongAsTheyAreRemembered(t *testing.T) {
	for retain, want := range map[string]string{"30m": "knows what it has stored for 1h0m0s", "1h": "", "0s": ""} {
		text := "version: 1\npipeline: p\njournal: {dir: d, retain: {time: " + retain + "}}\nsources:\n  - {name: a, stream: s, http: {listen: \"127.0.0.1:1\", path: /c, id_field: id}}\n"
		err := configs.Decode("x.yaml", []byte(text), pipeline.NewFile(pipeline.Kinds{Sources: sources.All()}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("kept for %s: got %v, want %q", retain, err, want)
		}
	}
}
