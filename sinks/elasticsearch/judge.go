package elasticsearch

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/daybook-data/daybook/pipeline"
)

// verdict is what the result of one operation means for its record.
type verdict int

const (
	done       verdict = iota
	superseded         // a newer version is there
	again              // the server can't now; the same operation may work later
	refused            // the server never takes this record
	gone               // the index is not there any more
)

// judge sorts a result. Only what the server says of the document itself refuses it; what
// has to do with the state of an index or of the cluster is tried again, and seen.
func judge(k kind, r *result) verdict {
	if r.Error == nil {
		if r.Status < 300 || r.Status == http.StatusNotFound && k == remove {
			return done
		}
		r.Error = &cause{Type: "unknown", Reason: "the server gives no reason"}
		return again
	}
	switch {
	case r.Status == http.StatusConflict && r.Error.Type == "version_conflict_engine_exception":
		return superseded
	case r.Status == http.StatusNotFound && r.Error.Type == "index_not_found_exception":
		return gone
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, // a privilege, a block
		r.Status == http.StatusTooManyRequests, r.Status >= 500,
		r.Error.Type == "index_closed_exception":
		return again
	}
	return refused
}

// currentVersion finds the version in the reason of a conflict: Elasticsearch gives it
// nowhere else, and of a deleted document it can't be asked for.
var currentVersion = regexp.MustCompile(`current version \[(\d+)\]`)

// checkNewer makes sure that the newer version in place is one of this stream's.
func (s *Sink) checkNewer(ctx context.Context, o *operation, r *result) error {
	m := currentVersion.FindStringSubmatch(r.Error.Reason)
	if m == nil {
		return fmt.Errorf("index %s, id %q: a conflict that names no version: %s", o.index, o.id, r.Error)
	}
	version, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return fmt.Errorf("reading the version of a conflict: %w", err)
	}
	has, upTo, err := s.issued.Has(ctx, version)
	if has || err != nil {
		return err
	}
	return &pipeline.StopError{
		Code: "version-from-elsewhere", Where: fmt.Sprintf("elasticsearch index %s, id %q", o.index, o.id),
		Err: fmt.Errorf("it has version %d, above the %d that its streams have reached: something else writes it", version, upTo),
		Fix: "give each pipeline indices of its own; then delete what the other one wrote and replay",
	}
}
