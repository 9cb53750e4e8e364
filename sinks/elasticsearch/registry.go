package elasticsearch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/daybook-data/daybook/pipeline"
)

// registryIndex holds a document for each index that a sink has begun. It is hidden: a
// search of all indices does not find it.
const registryIndex = "daybook-sinks"

// registry remembers in Elasticsearch itself which indices a sink has written to, since an
// index that is missing does not say whether it was deleted or is yet to come.
type registry struct {
	client *client
	env    pipeline.SinkEnv
}

// entry is a document of the registry.
type entry struct {
	Pipeline string `json:"pipeline"`
	Sink     string `json:"sink"`
	Index    string `json:"index"`
}

// id is that of the document for an index.
func (r *registry) id(index string) string {
	sum := sha256.Sum256([]byte(r.env.Pipeline + "\x00" + r.env.Name + "\x00" + index))
	return hex.EncodeToString(sum[:])
}

// knows reports whether the sink has written to an index of this name before.
func (r *registry) knows(ctx context.Context, index string) (bool, error) {
	err := r.client.call(ctx, esapi.GetRequest{Index: registryIndex, DocumentID: r.id(index)}, nil)
	var answer *answerError
	if errors.As(err, &answer) && answer.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// remember adds an index, unless it is known.
func (r *registry) remember(ctx context.Context, i *index) error {
	known, err := r.knows(ctx, i.name)
	if err != nil || known {
		return err
	}
	settings := map[string]any{"index.number_of_shards": 1, "index.auto_expand_replicas": "0-1", "index.hidden": true}
	word := map[string]string{"type": "keyword"}
	body := indexBody{Settings: settings, Mappings: map[string]any{
		"dynamic": false, "properties": map[string]any{"pipeline": word, "sink": word, "index": word},
	}}
	err = r.client.call(ctx, esapi.IndicesCreateRequest{Index: registryIndex, Body: jsonOf(body)}, nil)
	if err != nil && errorType(err) != "resource_already_exists_exception" {
		return err
	}
	document := entry{Pipeline: r.env.Pipeline, Sink: r.env.Name, Index: i.name}
	return r.client.call(ctx, esapi.IndexRequest{Index: registryIndex, DocumentID: r.id(i.name), Body: jsonOf(document)}, nil)
}
