// Package history holds what clients of a journal did and saw, in the order in which it happened, as lines of JSON.
//
// A history is of operations. Each has the time at which it was begun and the time at which its outcome was known, so
// that who judges it knows what was concurrent. An operation whose outcome never became known may take effect at any
// time after its beginning, or never.
package history
