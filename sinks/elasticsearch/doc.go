// Package elasticsearch is the sink that keeps rows as documents in Elasticsearch.
//
// # What stands in Elasticsearch
//
// A document is the row's JSON byte for byte, with nothing of ours in it. Its _id, index
// and routing come from templates. Its _version is the version of the record that wrote
// it (external_gte): whatever is delivered again, late, or by two workers at once, the
// newest remains. Deletes carry versions too. Elasticsearch forgets the version of a
// deleted document after index.gc_deletes (15 minutes here, 60 seconds by default) and
// when it restarts; from then on an older record that is delivered without the deletion
// that follows it could bring the document back.
//
// A record that changes a row's place (index, id or routing) deletes it at the old place
// first. Two records never share a document by accident: ids longer than Elasticsearch
// takes (512 bytes) are rejected, not shortened.
//
// # Indices
//
// An index is made, or taken over where it is empty, before its first document. What
// Daybook knows of it stands in the _meta of its mapping:
//
//	"_meta": {"daybook": {"pipeline": "shop", "sink": "search", "epoch": 0, "name": "shop-orders",
//	          "streams": {"shop.changes": "id"}, "tables": {"shop.orders": "version of its last truncate"}}}
//
// An index of other streams or of another epoch is refused. After each Flush the sink
// checks that the indices are still those that it began with: if one was deleted, and made
// anew by the write that followed, it stops with the code target-lost.
//
// Which indices a sink has begun stands in the hidden index daybook-sinks. So an index that
// was deleted while the sink was not running stops it with target-lost, too, instead of
// being made anew and filled from the middle.
//
// Index names are lower case in Elasticsearch: capital letters are made small, and two
// names that differ in nothing else stop the sink. Other names that Elasticsearch does not
// take reject their record.
//
// # What Flush promises
//
// All is durable, and found by its id. Searches find it when the index is refreshed: by
// itself within a second, or, with `refresh: flush`, before Flush returns.
package elasticsearch
