package elasticsearch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/daybook-data/daybook/pipeline"
)

// index is an index that was found or made.
type index struct {
	name      string // as it is written to: its own name, or that of an alias of it alone
	uuid      string // differs after it was deleted and made again
	gcDeletes time.Duration
	async     bool // it confirms what is not on disk yet
	meta      meta
	other     map[string]any // what others keep in _meta
}

// meta is our mark in the mapping of an index.
type meta struct {
	Pipeline string `json:"pipeline"`
	Sink     string `json:"sink"`
	Epoch    uint16 `json:"epoch"`
	// Name is the index's name as the template gives it.
	Name string `json:"name"`
	// Streams are the streams that the index is filled from, with their ids.
	Streams map[string]string `json:"streams"`
	// Tables are the tables whose rows are here, with the version of their last
	// truncate, a decimal number; empty where there was none.
	Tables map[string]string `json:"tables"`
}

func newMeta(env pipeline.SinkEnv, name, table string) meta {
	m := meta{
		Pipeline: env.Pipeline, Sink: env.Name, Epoch: env.Epoch, Name: name,
		Streams: map[string]string{}, Tables: map[string]string{},
	}
	for _, s := range env.Streams {
		m.Streams[s.Name] = s.ID
	}
	if table != "" {
		m.Tables[table] = ""
	}
	return m
}

// fullMeta returns _meta with all that is in it.
func (i *index) fullMeta() map[string]any {
	m := map[string]any{}
	maps.Copy(m, i.other)
	m["daybook"] = i.meta
	return m
}

// truncated returns the version of the table's last truncate; what is older is gone.
func (i *index) truncated(table string) uint64 {
	version, err := strconv.ParseUint(i.meta.Tables[table], 10, 64)
	if err != nil {
		return 0 // none yet
	}
	return version
}

// load asks for an index; nil where there is none. Where the index has no mark of ours,
// meta.Streams is nil.
func (x *indices) load(ctx context.Context, name string) (*index, error) {
	var answer map[string]struct {
		Settings map[string]any
		Mappings struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	err := x.client.call(ctx, esapi.IndicesGetRequest{Index: escaped(name), FlatSettings: new(true)}, &answer)
	if errorType(err) == "index_not_found_exception" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(answer) != 1 {
		return nil, foreign(name, fmt.Sprintf("the name is an alias of %d indices", len(answer)))
	}
	i := &index{name: name, other: map[string]any{}, gcDeletes: time.Minute}
	for concrete, found := range answer {
		if strings.HasPrefix(concrete, ".ds-") {
			return nil, foreign(name, "it is a data stream, which takes no versions")
		}
		i.uuid, _ = found.Settings["index.uuid"].(string)
		i.async = found.Settings["index.translog.durability"] == "async"
		if text, ok := found.Settings["index.gc_deletes"].(string); ok {
			i.gcDeletes = parseTime(text)
		}
		for key, value := range found.Mappings.Meta {
			if key != "daybook" {
				i.other[key] = value
				continue
			}
			if err := json.Unmarshal(value, &i.meta); err != nil {
				return nil, foreign(name, "its mark is not readable: "+err.Error())
			}
			if i.meta.Tables == nil {
				i.meta.Tables = map[string]string{}
			}
		}
	}
	return i, nil
}

// parseTime reads a time in Elasticsearch's units. One that it can't read counts as short.
func parseTime(text string) time.Duration {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil {
			return time.Duration(n) * 24 * time.Hour
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
