// Package retry is what loops share that try something again until it works: the pause between two tries, and telling an
// operator of what goes wrong once, however often it does.
package retry

import (
	"context"
	"strings"
	"time"
	"unicode"
)

// Pause waits before something is tried again. It returns false at once when ctx ends: there is no time for another try.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Told is what was logged last, by subject, so that it is logged once. Delete a subject when all is well with it again. It
// is not safe for concurrent use.
type Told map[string]string

// Fresh notes what is about to be logged of a subject, and says whether it is news.
func (t Told) Fresh(subject, text string) bool {
	if t[subject] == text {
		return false
	}
	t[subject] = text
	return true
}

// Gist is an error's text without what differs each time: its digits, such as the ports that connections are made from.
func Gist(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
}
