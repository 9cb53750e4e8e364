package elasticsearch_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/elasticsearch"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

var shared services.Pool

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Suite{New: func(t *testing.T) sinktest.Destination { return newPlace(t) }})
}

// place is the indices of a prefix on a real node, reached through a line that can break.
type place struct {
	node   *node
	prefix string
	proxy  *sinktest.Proxy
}

func newPlace(t *testing.T) *place {
	server := shared.Elasticsearch(t)
	return &place{
		node:   &node{url: server.URL()},
		prefix: uniqueName(),
		proxy:  sinktest.NewProxy(t, server.Addr),
	}
}

func uniqueName() string { return fmt.Sprintf("test%d", time.Now().UnixNano()) }

func (p *place) Config(*testing.T) pipeline.SinkConfig {
	c := newConfig("http://"+p.proxy.Addr, p.prefix+"-{table}")
	c.ID = "{id}"
	return c
}

func (p *place) Break(*testing.T) func() {
	p.proxy.Cut()
	return p.proxy.Mend
}

// Refuse makes the index by hand, its values numbers.
func (p *place) Refuse(t *testing.T, _ sinktest.Row) {
	p.node.must(t, "PUT", "/"+p.prefix+"-orders", `{"mappings":{"properties":{"v":{"type":"integer"}}}}`)
}

func (p *place) Contents(t *testing.T) []sinktest.Row {
	var rows []sinktest.Row
	for _, doc := range p.node.documents(t, p.prefix+"-*") {
		row := sinktest.ParseRow(t, doc.Source)
		if row.ID != doc.ID {
			t.Errorf("the document of id %q holds the row of id %q", doc.ID, row.ID)
		}
		rows = append(rows, row)
	}
	return rows
}

func newConfig(url, index string) *elasticsearch.Config {
	return &elasticsearch.Config{
		URLs: []string{url}, Index: index, ID: "{key}", Refresh: "interval", MaxBatch: 8 << 20,
		GCDeletes: 15 * time.Minute, Truncate: "delete", Timeout: 20 * time.Second,
	}
}
