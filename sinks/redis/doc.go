// Package redis is the sink that keeps rows in Redis: each as a hash or as a string of
// JSON, under a key made by a template.
//
// # What stands in Redis
//
//	order:7                          the row
//	daybook:v={order:7}              its version (16 hex digits), target, stream, table
//	daybook:target:order:{id}        whose target this is (a hash), one for each template
//
// A row's key, version key and content change in one script, and only if the version is
// not below the one that is there. So a record may be delivered again, late, or by two
// workers at once: what remains is the newest. A delete leaves its version behind for
// tombstone_ttl; only a record that is delivered later than that after its own deletion,
// and without the deletion following it, can bring a row back.
//
// The version key lies in the slot of the row's key: a key with a hash tag ({...} that is
// not empty) lends it ("daybook:v:" before the key), any other is put in braces. A key
// without a tag but with a closing brace can't be put so; it has the version in another
// slot, which matters to a cluster only. Clusters are refused for now.
//
// A hash has a field for each column, the value as text: numbers with the digits that
// stand in the record, true and false as words, nested values as JSON. A column that is
// null has no field. A row replaces the whole hash: fields of the old row don't stay.
//
// # What Flush promises
//
// The server has applied all and confirmed each command. How much of that survives the
// server is for its own settings to say (appendonly, appendfsync, replicas). So each Flush
// leaves the checkpoint in the target's hash. Where the server comes back with an older
// one, or with none (it was emptied, a replica that lagged took over, an old copy was
// loaded), the sink stops with the code target-set-back or target-lost and says from
// where to replay, instead of going on with holes.
package redis
