package metadata_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/strictjson"
)

// Streams of metadata from before say nothing of copies that are wanted: it is those that are placed.
func TestAStreamWantsWhatIsPlaced(t *testing.T) {
	t.Parallel()
	var old metadata.Stream
	if err := strictjson.Decode([]byte(`{"id":"6f1f3c52-0b4c-4a51-9a0e-1f2f3a4b5c6d","name":"s","partitions":2,"journals":2,"created_ms":1,
		"placement":[[{"node":1},{"node":2}],[{"node":3}]]}`), &old); err != nil {
		t.Fatal(err)
	}
	for journal, want := range []int{2, 1} {
		if got := old.WantedOf(int32(journal)); got != want {
			t.Errorf("journal %d wants %d, want %d", journal, got, want)
		}
	}
	if b, err := json.Marshal(&old); err != nil || bytes.Contains(b, []byte("wanted")) {
		t.Errorf("nodes of an older build cannot read %s, %v", b, err)
	}
	old.Wanted = []int32{0, 3}
	if got := old.WantedOf(1); got != 3 || old.WantedOf(0) != 2 {
		t.Errorf("got %d and %d, want 2 and 3", old.WantedOf(0), got)
	}
}
