// Package http is the source of events that applications post over HTTP.
//
// # Requests
//
// POST to the configured path, with one of these bodies, plain or with
// Content-Encoding gzip or deflate:
//
//   - application/json: one object, or an array of objects;
//   - application/x-ndjson (also application/ndjson, application/jsonl and
//     application/x-jsonlines): an object a line, blank lines are skipped;
//   - no Content-Type, or text/plain (what a browser's sendBeacon says): either of
//     these, told by the body; other types get 415.
//
// An object becomes one record. Its value is the object as it was sent, less the
// white space between its parts: no number is rounded, no text re-escaped, no key
// moved.
//
// # Answers
//
//	200  {"accepted":2,"duplicates":1}: all of it is in the journal. Duplicates were
//	     there before, under the same id, or stand in the request twice.
//	400  not well-formed, or an element is not right; {"error":..., "index":3} (from
//	     0) or "line":4 (from 1) names the first such. Nothing was stored.
//	401  the bearer token is missing or wrong
//	404, 405, 415  another path, method, type or encoding
//	413  the body, unpacked, or the number of its elements is above the limit
//	429  too many requests at once; Retry-After says when to come again
//	503  the journal did not confirm in time, or the source is stopping; Retry-After.
//	     With an id, sending the request again is safe.
//
// A request that is refused with a 4xx is not stored, not even in part. Success is
// never answered before the journal has flushed all of the request (promise 9). After
// a 503 some of it may be stored, or come to be: this is what ids are for.
//
// A key that stands twice in an object is refused: whichever value a reader took,
// the other would be lost. So is a body that is not UTF-8.
//
// # Identity
//
// With id_field, an element's id is a text or a number of at most 256 bytes, and
// an element without one is refused. The same id within dedupe_window is stored
// once; two elements of one request with the same id must be equal. Without
// id_field each element is stored as often as it is sent.
//
// # Time
//
// The event time is read from time_field: RFC 3339 text, or a number if time_unit
// declares its unit (a number without a declared unit is refused, not guessed);
// text without a zone needs time_zone. An element whose time is absent or null
// gets the time of its arrival and the header daybook.time_from: arrival.
package http
