package elasticsearch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/daybook-data/daybook/pipeline"
)

// indexBody is what a new index is made with.
type indexBody struct {
	Settings map[string]any `json:"settings"`
	Mappings map[string]any `json:"mappings"`
}

// indices are the indices that a sink writes to in this run, each prepared before its
// first document.
type indices struct {
	client    *client
	registry  registry
	env       pipeline.SinkEnv
	body      indexBody
	gcDeletes time.Duration

	known   map[string]*index // by the name that Elasticsearch has
	touched map[string]*index // since the last verify
}

func newIndices(c *client, env pipeline.SinkEnv, body indexBody, gcDeletes time.Duration) *indices {
	return &indices{
		client: c, registry: registry{client: c, env: env}, env: env, body: body, gcDeletes: gcDeletes,
		known: map[string]*index{}, touched: map[string]*index{},
	}
}

// prepareFor returns the index of an operation, ready to take it.
func (x *indices) prepareFor(ctx context.Context, o *operation) (*index, error) {
	i, err := x.prepare(ctx, o.index, o.Table)
	if err != nil {
		return nil, err
	}
	if _, ok := i.meta.Tables[o.Table]; !ok && o.Table != "" {
		i.meta.Tables[o.Table] = ""
		if err := x.save(ctx, i); err != nil {
			delete(i.meta.Tables, o.Table)
			return nil, err
		}
	}
	x.touched[i.name] = i
	return i, nil
}

// prepare returns the index of the given name, as the template gives it. It makes the
// index, for a first table if that is known, where there is none, and refuses one that is
// not ours.
func (x *indices) prepare(ctx context.Context, name, table string) (*index, error) {
	lower, err := indexName(name)
	if err != nil {
		return nil, err // plan lets no such name through
	}
	i := x.known[lower]
	if i == nil {
		if i, err = x.claim(ctx, lower, newMeta(x.env, name, table)); err != nil {
			return nil, err
		}
		x.known[lower] = i
	}
	if i.meta.Name != name {
		return nil, &pipeline.StopError{
			Code: "index-name-collision", Where: "index " + lower,
			Err: fmt.Errorf("%q and %q differ in capital letters only, which Elasticsearch has not", i.meta.Name, name),
			Fix: "tell the two apart in the template of `index`, or write them with sinks of their own",
		}
	}
	return i, nil
}

// claim finds or makes the index and puts our mark on it.
func (x *indices) claim(ctx context.Context, lower string, ours meta) (*index, error) {
	i, err := x.load(ctx, lower)
	if err == nil && i != nil && i.meta.Streams != nil {
		err = x.check(ctx, i)
	} else if err == nil {
		i, err = x.begin(ctx, i, lower, ours)
	}
	if err == nil {
		err = x.registry.remember(ctx, i)
	}
	if err != nil {
		if errors.As(err, new(*pipeline.StopError)) {
			return nil, err
		}
		return nil, fmt.Errorf("preparing index %s: %w", lower, err)
	}
	if i.async {
		x.env.Log.Warn("the index confirms documents before they are on disk (index.translog.durability: async): a crash of the node loses some, and nobody is told", "index", lower)
	}
	return i, nil
}

// begin makes an index, or takes over the one that is there.
func (x *indices) begin(ctx context.Context, i *index, lower string, ours meta) (*index, error) {
	if err := x.checkNew(ctx, lower); err != nil {
		return nil, err
	}
	if i == nil {
		return x.create(ctx, lower, ours)
	}
	return i, x.adopt(ctx, i, ours)
}

// checkNew makes sure that an index which is not there, or not ours, never was.
func (x *indices) checkNew(ctx context.Context, name string) error {
	if len(x.env.Cursor) == 0 {
		return nil // a first run, or the replay that makes good for a loss
	}
	known, err := x.registry.knows(ctx, name)
	if err == nil && known {
		return x.lost(name, "the sink has written to it before, and it was deleted or replaced since")
	}
	return err
}

// create makes an index, unless another worker just did, and returns what is there.
func (x *indices) create(ctx context.Context, lower string, ours meta) (*index, error) {
	if err := x.put(ctx, lower, ours); err != nil && errorType(err) != "resource_already_exists_exception" {
		return nil, err
	}
	i, err := x.load(ctx, lower)
	if err == nil && i == nil {
		err = errors.New("it is missing right after it was made")
	}
	if err == nil && i.meta.Streams == nil {
		err = x.adopt(ctx, i, ours)
	}
	return i, err
}

// put makes an index.
func (x *indices) put(ctx context.Context, lower string, ours meta) error {
	body := indexBody{Settings: map[string]any{}, Mappings: map[string]any{}}
	for k, v := range x.body.Settings {
		body.Settings[k] = v
	}
	for k, v := range x.body.Mappings {
		body.Mappings[k] = v
	}
	body.Settings["index.gc_deletes"] = milliseconds(x.gcDeletes)
	other, _ := body.Mappings["_meta"].(map[string]any)
	i := &index{name: lower, meta: ours, other: other}
	body.Mappings["_meta"] = i.fullMeta()
	return x.client.call(ctx, esapi.IndicesCreateRequest{Index: url.PathEscape(lower), Body: jsonOf(body)}, nil)
}

// adopt takes over an index without our mark, if nobody has written to it.
func (x *indices) adopt(ctx context.Context, i *index, ours meta) error {
	if err := x.client.call(ctx, esapi.IndicesRefreshRequest{Index: escaped(i.name)}, nil); err != nil {
		return err
	}
	var answer struct{ Count int64 }
	if err := x.client.call(ctx, esapi.CountRequest{Index: escaped(i.name)}, &answer); err != nil {
		return err
	}
	if answer.Count > 0 {
		return foreign(i.name, fmt.Sprintf("it holds %d documents and no mark of Daybook", answer.Count))
	}
	i.meta = ours
	return x.mark(ctx, i)
}

// check compares what the index says of itself with this run.
func (x *indices) check(ctx context.Context, i *index) error {
	if i.meta.Epoch != x.env.Epoch {
		return foreign(i.name, fmt.Sprintf("it is of epoch %d, this run of epoch %d", i.meta.Epoch, x.env.Epoch))
	}
	shared, added := false, false
	for _, stream := range x.env.Streams {
		id, ok := i.meta.Streams[stream.Name]
		if ok && id != stream.ID {
			return foreign(i.name, fmt.Sprintf("it was filled from another stream %s (id %s, now %s)", stream.Name, id, stream.ID))
		}
		shared, added = shared || ok, added || !ok
	}
	if !shared {
		return foreign(i.name, fmt.Sprintf("it is filled by sink %s of pipeline %s from other streams", i.meta.Sink, i.meta.Pipeline))
	}
	if !added && i.gcDeletes >= x.gcDeletes {
		return nil
	}
	for _, stream := range x.env.Streams {
		i.meta.Streams[stream.Name] = stream.ID
	}
	return x.mark(ctx, i)
}

// mark writes our settings and our mark to an index that is there.
func (x *indices) mark(ctx context.Context, i *index) error {
	if i.gcDeletes < x.gcDeletes {
		settings := map[string]any{"index.gc_deletes": milliseconds(x.gcDeletes)}
		if err := x.client.call(ctx, esapi.IndicesPutSettingsRequest{Index: escaped(i.name), Body: jsonOf(settings)}, nil); err != nil {
			return fmt.Errorf("setting gc_deletes of index %s: %w", i.name, err)
		}
	}
	return x.save(ctx, i)
}

// save writes our mark.
func (x *indices) save(ctx context.Context, i *index) error {
	body := map[string]any{"_meta": i.fullMeta()}
	if err := x.client.call(ctx, esapi.IndicesPutMappingRequest{Index: escaped(i.name), Body: jsonOf(body)}, nil); err != nil {
		return fmt.Errorf("marking index %s: %w", i.name, err)
	}
	return nil
}

// batches returns the names of the touched indices, as many together as a URL holds.
func (x *indices) batches() [][]string {
	const enough = 3000
	var batches [][]string
	size := enough
	for name := range x.touched {
		if size+len(name) > enough {
			batches, size = append(batches, nil), 0
		}
		last := &batches[len(batches)-1]
		*last = append(*last, escaped(name)...)
		size += len(name) + 1
	}
	return batches
}

// escaped is the name of an index as it stands in a path.
func escaped(name string) []string { return []string{url.PathEscape(name)} }

// refresh makes what was written visible to searches.
func (x *indices) refresh(ctx context.Context) error {
	for _, names := range x.batches() {
		if err := x.client.call(ctx, esapi.IndicesRefreshRequest{Index: names}, nil); err != nil {
			return fmt.Errorf("refreshing: %w", err)
		}
	}
	return nil
}

// verify makes sure that the indices written to are those that were prepared: Elasticsearch
// makes one that was deleted in the meantime anew, without a word.
func (x *indices) verify(ctx context.Context) error {
	ids := map[string]bool{}
	for _, names := range x.batches() {
		var answer map[string]struct{ Settings map[string]any }
		request := esapi.IndicesGetSettingsRequest{Index: names, Name: []string{"index.uuid"}, FlatSettings: new(true), IgnoreUnavailable: new(true)}
		if err := x.client.call(ctx, request, &answer); err != nil {
			return fmt.Errorf("checking the indices: %w", err)
		}
		for _, one := range answer {
			id, _ := one.Settings["index.uuid"].(string)
			ids[id] = true
		}
	}
	for name, i := range x.touched {
		if !ids[i.uuid] {
			return x.lost(name, "it was deleted or replaced while the sink was writing")
		}
	}
	clear(x.touched)
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func foreign(index, why string) error {
	return &pipeline.StopError{
		Code: "target-of-another", Where: "elasticsearch index " + index, Err: errors.New(why),
		Fix: "choose another index; or, if what is there may go, delete the index and replay from the start (--into live)",
	}
}

// lost is the error of an index that has gone. A replay has no cursor, so it takes the
// index for a new one.
func (x *indices) lost(index, why string) error {
	return &pipeline.StopError{
		Code: "target-lost", Where: "elasticsearch index " + index, Err: errors.New(why),
		Fix: fmt.Sprintf("delete what is there of the index and run `daybook replay FILE --sink %s --from start --into live`, then start the sink again", x.env.Name),
	}
}
