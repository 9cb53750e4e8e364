package elasticsearch

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// indexName returns the name as Elasticsearch takes it, capital letters made small.
func indexName(name string) (string, error) {
	lower := strings.ToLower(name)
	switch {
	case lower == "":
		return "", errors.New("the index has no name")
	case len(lower) > 255:
		return "", fmt.Errorf("index name of %d bytes: Elasticsearch takes 255", len(lower))
	case !utf8.ValidString(lower):
		return "", fmt.Errorf("index name %q is not UTF-8", name)
	case strings.ContainsAny(lower, "\\/*?\"<>| ,#:") || strings.ContainsFunc(lower, isControl):
		return "", fmt.Errorf("index name %q holds a space, a control character or one of \\/*?\"<>|,#: which Elasticsearch does not take", name)
	case strings.ContainsAny(lower[:1], "-_+."):
		return "", fmt.Errorf("index name %q begins with one of -_+. which Elasticsearch does not take", name)
	}
	return lower, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// checkID returns why Elasticsearch would not take an id or routing, nil if it does. It
// answers a bulk request with a bad id as a whole, so these must not get there.
func checkID(what, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("the document's %s is empty", what)
	case len(id) > 512:
		return fmt.Errorf("the document's %s has %d bytes: Elasticsearch takes 512", what, len(id))
	case !utf8.ValidString(id):
		return fmt.Errorf("the document's %s %q is not UTF-8", what, id)
	}
	return nil
}
