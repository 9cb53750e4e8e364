package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCompatibilityPageListsWhatIsOffered(t *testing.T) {
	page, err := os.ReadFile("COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			listed[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	for _, key := range apiKeys() {
		name, versions := kmsg.NameForKey(key), fmt.Sprintf("%d-%d", apis[key].min, apis[key].max)
		if apis[key].min == apis[key].max {
			versions = fmt.Sprint(apis[key].min)
		}
		if listed[name] != versions {
			t.Errorf("%s is offered in versions %s, the page says %q", name, versions, listed[name])
		}
		delete(listed, name)
	}
	delete(listed, "request")
	delete(listed, "---")
	if len(listed) > 0 {
		t.Errorf("the page lists what is not offered: %v", listed)
	}
}

func TestFlexibleVersionsAreKmsgs(t *testing.T) {
	for _, key := range apiKeys() {
		req := kmsg.RequestForKey(key)
		for version := int16(0); version <= apis[key].max; version++ {
			req.SetVersion(version)
			if got, want := apis[key].flexible(version), req.IsFlexible(); got != want {
				t.Errorf("%s version %d: flexible %v, want %v", kmsg.NameForKey(key), version, got, want)
			}
		}
	}
}
