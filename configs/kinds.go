package configs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Kind is the type of a field as its user sees it.
type Kind string

// The kinds of field.
const (
	KindString   Kind = "text"
	KindBool     Kind = "true or false"
	KindInt      Kind = "number"
	KindDuration Kind = "duration"
	KindSize     Kind = "size"
	KindTime     Kind = "time"
	KindStrings  Kind = "list of texts"
	KindSecret   Kind = "secret"
	KindSection  Kind = "section"
	KindList     Kind = "list of sections"
	KindOneOf    Kind = "one of"
)

// Sizes in bytes, for defaults.
const (
	KiB = int64(1) << 10
	MiB = int64(1) << 20
	GiB = int64(1) << 30
)

// scalar returns a plain value's text, or an error that says what stands there.
func scalar(n *yaml.Node, tag, want string) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("want %s, got a %s", want, nodeKind(n))
	}
	if tag != "" && n.Tag != tag {
		if tag == "!!str" && n.Tag != "!!null" {
			return "", fmt.Errorf("want %s, got %s: put it in quotes", want, n.Value)
		}
		return "", fmt.Errorf("want %s, got %s", want, valueOrNothing(n))
	}
	return n.Value, nil
}

func valueOrNothing(n *yaml.Node) string {
	if n.Tag == "!!null" {
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "section"
	case yaml.SequenceNode:
		return "list"
	}
	return "value"
}

func parseString(n *yaml.Node) (string, error) { return scalar(n, "!!str", "text") }
func showString(s string) string {
	if s == "" {
		return ""
	}
	return quoteYAML(s)
}

func parseBool(n *yaml.Node) (bool, error) {
	s, err := scalar(n, "!!bool", "true or false")
	return strings.EqualFold(s, "true"), err
}
func showBool(b bool) string { return strconv.FormatBool(b) }

func parseInt(n *yaml.Node) (int, error) {
	s, err := scalar(n, "!!int", "a whole number")
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number, got %q", s)
	}
	return int(v), nil
}
func showInt(i int) string { return strconv.Itoa(i) }

// maxDays is what a time.Duration can hold.
const maxDays = int64(math.MaxInt64 / (24 * time.Hour))

func parseDuration(n *yaml.Node) (time.Duration, error) {
	s, err := scalar(n, "", "a duration such as 5s, 10m or 7d")
	if err != nil {
		return 0, err
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		d, err := strconv.ParseInt(days, 10, 32)
		if err == nil && d >= 0 && d <= maxDays {
			return time.Duration(d) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || (s == "0" && n.Tag == "!!int") {
		return 0, fmt.Errorf("want a duration such as 5s, 10m or 7d, got %s", valueOrNothing(n))
	}
	if d < 0 {
		return 0, errors.New("a duration can't be negative")
	}
	return d, nil
}
func showDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	if d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// units are the suffixes of a size, the longest first so that B comes last.
var units = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

func parseSize(n *yaml.Node) (int64, error) {
	s, err := scalar(n, "", "a size such as 64MiB")
	if err != nil {
		return 0, err
	}
	v, err := ParseSize(s)
	if err != nil {
		return 0, fmt.Errorf("%w, got %s", err, valueOrNothing(n))
	}
	return v, nil
}

// errSize says what a size looks like.
var errSize = errors.New("want a size such as 512KiB, 64MiB or 2GiB")

// ParseSize reads a number of bytes with its unit, as in a file.
func ParseSize(s string) (int64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 0 || v > math.MaxInt64/u.bytes {
			break
		}
		return v * u.bytes, nil
	}
	return 0, errSize
}
func showSize(v int64) string {
	if v == 0 {
		return "0B"
	}
	for _, u := range units[:4] {
		if v%u.bytes == 0 {
			return strconv.FormatInt(v/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(v, 10) + "B"
}

func parseTime(n *yaml.Node) (time.Time, error) {
	s, err := scalar(n, "", "a time such as 2026-09-01T00:00:00Z")
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("want a time in RFC 3339 with a zone, such as 2026-09-01T00:00:00Z, got %s", valueOrNothing(n))
	}
	return t.UTC(), nil
}
func showTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func parseStrings(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("want a list of texts, got a %s: put it in [ ]", nodeKind(n))
	}
	out := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		s, err := parseString(resolve(item))
		if err != nil {
			return nil, &itemError{node: item, err: err}
		}
		out = append(out, s)
	}
	return out, nil
}

// itemError is a problem of one item of a list, which is then its place.
type itemError struct {
	node *yaml.Node
	err  error
}

// Error is the sentence alone; the place is told beside it.
func (e *itemError) Error() string { return e.err.Error() }

// Unwrap returns the item's own error.
func (e *itemError) Unwrap() error { return e.err }

// at returns the node that an error is about.
func at(err error, n *yaml.Node) *yaml.Node {
	var item *itemError
	if errors.As(err, &item) {
		return item.node
	}
	return n
}

func showStrings(s []string) string {
	if len(s) == 0 {
		return ""
	}
	quoted := make([]string, len(s))
	for i := range s {
		quoted[i] = quoteYAML(s[i])
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quoteYAML returns s as it can stand in a YAML file, plain where that is safe for
// readers of every version of YAML.
func quoteYAML(s string) string {
	if !plain.MatchString(s) || notText.MatchString(s) {
		return strconv.Quote(s)
	}
	return s
}

var (
	plain   = regexp.MustCompile(`^[A-Za-z/](?:[A-Za-z0-9_./:-]*[A-Za-z0-9_./-])?$`)
	notText = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)
)
