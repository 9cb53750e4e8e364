package sources_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/sources"
)

// TestEveryKindIsDescribedOnce holds the list to what the documents need of it.
func TestEveryKindIsDescribedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, spec := range sources.All() {
		if seen[spec.Kind] {
			t.Errorf("the kind %s stands twice in the list", spec.Kind)
		}
		seen[spec.Kind] = true
		if !strings.HasSuffix(spec.Doc, ".") {
			t.Errorf("%s: the doc %q is no sentence", spec.Kind, spec.Doc)
		}
		if a, b := spec.New(), spec.New(); a == b {
			t.Errorf("%s: New returns the same section twice", spec.Kind)
		}
		err := configs.Decode("x.yaml", []byte("no_such_key: 1"), spec.New())
		if err == nil || !strings.Contains(err.Error(), "no_such_key: unknown key") {
			t.Errorf("%s: an unknown key gives %v", spec.Kind, err)
		}
	}
	for _, kind := range []string{"mysql", "nginx", "http"} {
		if !seen[kind] {
			t.Errorf("the kind %s is missing", kind)
		}
	}
}
