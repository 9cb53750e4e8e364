package node

import (
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/storage"
)

// The document of the pipeline file, which knows no storage, says what storage does.
func TestTheDefaultsOfTheDiskAreThoseOfStorage(t *testing.T) {
	var c pipeline.DiskConfig
	if err := configs.Decode("x.yaml", []byte("{}"), &c); err != nil {
		t.Fatal(err)
	}
	if c.Cache != storage.DefaultCacheBytes {
		t.Errorf("the cache is %d by default, storage's %d", c.Cache, int64(storage.DefaultCacheBytes))
	}
}
