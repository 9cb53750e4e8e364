package elasticsearch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/daybook-data/daybook/pipeline"
)

// truncate does what the section says about TRUNCATE TABLE. All operations before it are
// applied when it is called.
func (s *Sink) truncate(ctx context.Context, it *item) error {
	switch s.config.Truncate {
	case "ignore":
		return nil
	case "stop":
		return truncateError(it, "`truncate: stop` is set")
	}
	name, err := s.places.index.Render(&it.Delivery, &it.After, s.env.Name)
	if err != nil {
		return truncateError(it, "the table's documents are spread over indices that their rows name: "+err.Error())
	}
	if _, err := indexName(name); err != nil {
		s.reject(it, err.Error())
		return nil
	}
	i, err := s.indices.prepare(ctx, name, it.Table)
	if err != nil {
		return err
	}
	if it.Version < i.truncated(it.Table) {
		return nil
	}
	for table := range i.meta.Tables {
		if table != it.Table {
			return truncateError(it, fmt.Sprintf("index %s holds the rows of %s too, and documents don't say whose they are", i.name, table))
		}
	}
	// The mark comes first: what is still under way of the old table is refused from then
	// on, and a crash during the search repeats it.
	before := i.meta.Tables[it.Table]
	i.meta.Tables[it.Table] = strconv.FormatUint(it.Version, 10)
	if err := s.indices.save(ctx, i); err != nil {
		i.meta.Tables[it.Table] = before
		return err
	}
	s.indices.touched[i.name] = i
	if err := s.removeOlder(ctx, it, i); err != nil {
		return fmt.Errorf("truncating index %s: %w", i.name, err)
	}
	return nil
}

func truncateError(it *item, why string) error {
	return &pipeline.StopError{
		Code: "truncate", Where: "table " + it.Table, Err: errors.New("the table was truncated: " + why),
		Fix: "give the table an index of its own (`index: \"...{table}\"`) with `truncate: delete`; or set `truncate: ignore` to keep its documents",
	}
}

// page is a page of a scroll.
type page struct {
	ID   string `json:"_scroll_id"`
	Hits struct {
		Hits []struct {
			ID      string `json:"_id"`
			Routing string `json:"_routing"`
			Version uint64 `json:"_version"`
		}
	}
}

// removeOlder deletes the documents that are older than the item, each with its version,
// so that none of them comes back. (_delete_by_query takes no external versions.)
func (s *Sink) removeOlder(ctx context.Context, it *item, i *index) (err error) {
	if err := s.client.call(ctx, esapi.IndicesRefreshRequest{Index: escaped(i.name)}, nil); err != nil {
		return err
	}
	search := map[string]any{"size": 1000, "sort": []string{"_doc"}, "version": true, "_source": false}
	var p page
	if err := s.client.call(ctx, esapi.SearchRequest{Index: escaped(i.name), Scroll: 2 * time.Minute, Body: jsonOf(search)}, &p); err != nil {
		return err
	}
	defer func() {
		e := s.client.call(ctx, esapi.ClearScrollRequest{Body: jsonOf(map[string]string{"scroll_id": p.ID})}, nil)
		if err == nil {
			err = e
		}
	}()
	for len(p.Hits.Hits) > 0 {
		var removes []operation
		for _, hit := range p.Hits.Hits {
			if hit.Version <= it.Version {
				removes = append(removes, operation{item: it, kind: remove, place: place{index: i.meta.Name, id: hit.ID, routing: hit.Routing}})
			}
		}
		if len(removes) > 0 {
			if _, err := s.apply(ctx, removes); err != nil {
				return err
			}
		}
		next := page{}
		if err := s.client.call(ctx, esapi.ScrollRequest{Body: jsonOf(map[string]string{"scroll": "2m", "scroll_id": p.ID})}, &next); err != nil {
			return err
		}
		p = next
	}
	return nil
}
