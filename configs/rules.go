package configs

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Rule is a condition on one field's value.
type Rule struct {
	// Doc says the condition in the documents, as in "one of a, b".
	Doc string

	// What the JSON Schema can say of the rule.
	required, positive, notEmpty bool
	enum                         []string
	pattern                      string
	bounds                       *bounds

	check func(v any) error
}

// Required makes the field mandatory; its default is then of no account.
var Required = Rule{Doc: "required", required: true}

// Positive wants a number, size or duration above zero.
var Positive = Rule{Doc: "above zero", positive: true, check: func(v any) error {
	if toInt(v) <= 0 {
		return errors.New("must be above zero")
	}
	return nil
}}

// HostPort wants host:port with a port between 0 and 65535.
var HostPort = Rule{Doc: "host:port", check: func(v any) error {
	for _, s := range toStrings(v) {
		_, port, err := net.SplitHostPort(s)
		if err != nil {
			return fmt.Errorf("%q is not host:port", s)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("%q: port %q is not a number up to 65535", s, port)
		}
	}
	return nil
}}

// HTTPURL wants http:// or https:// URLs without a password in them.
var HTTPURL = Rule{Doc: "http or https URL without user or password", check: func(v any) error {
	for _, s := range toStrings(v) {
		u, err := url.Parse(s)
		if err != nil {
			return errors.New("is not a URL") // it may hold a password, so it is not shown
		}
		if u.User != nil { // the message must not show it
			return errors.New("holds a user or password: give them as `user` and `password: {env: NAME}`")
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return fmt.Errorf("%q is not an http:// or https:// URL", s)
		}
	}
	return nil
}}

// NotEmpty wants at least one character, or one element.
var NotEmpty = Rule{Doc: "not empty", notEmpty: true, check: func(v any) error {
	s, isList := v.([]string)
	if t, ok := v.(string); (ok && t == "") || (isList && len(s) == 0) {
		return errors.New("must not be empty")
	}
	return nil
}}

// Name wants a name that is safe as a topic, a metric label and a file name.
var Name = Pattern(`[A-Za-z0-9][A-Za-z0-9._-]{0,199}`, "letters, digits, dots, dashes and underscores, at most 200, the first a letter or digit")

// Enum wants one of the given values.
func Enum(values ...string) Rule {
	return Rule{Doc: "one of " + strings.Join(values, ", "), enum: values, check: func(v any) error {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		for _, e := range values {
			if s == e {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s%s", s, strings.Join(values, ", "), Suggestion(s, values))
	}}
}

// Range wants a number, size or duration from lo to hi, both included.
func Range(lo, hi int64) Rule {
	return Rule{bounds: &bounds{lo, hi}, check: func(v any) error {
		if n := toInt(v); n < lo || n > hi {
			return fmt.Errorf("must be from %s to %s", like(v, lo), like(v, hi))
		}
		return nil
	}}
}

// bounds are those of a Range.
type bounds struct{ lo, hi int64 }

// like writes n as a value of v's type stands in the file.
func like(v any, n int64) string {
	switch v.(type) {
	case int64:
		return showSize(n)
	case time.Duration:
		return showDuration(time.Duration(n))
	}
	return strconv.FormatInt(n, 10)
}

// Pattern wants texts that the expression matches as a whole; doc says it in words.
func Pattern(expr, doc string) Rule {
	anchored := "^(?:" + expr + ")$"
	re := regexp.MustCompile(anchored)
	return Rule{Doc: doc, pattern: anchored, check: func(v any) error {
		for _, s := range toStrings(v) {
			if !re.MatchString(s) {
				return fmt.Errorf("%q: want %s", s, doc)
			}
		}
		return nil
	}}
}

// Func wants what check says of the typed value; doc says it in words.
func Func[T any](doc string, check func(v T) error) Rule {
	return Rule{Doc: doc, check: func(v any) error { return check(v.(T)) }}
}

// text says the rule for a field whose zero value is zero.
func (r Rule) text(zero any) string {
	if r.bounds != nil {
		return like(zero, r.bounds.lo) + " to " + like(zero, r.bounds.hi)
	}
	return r.Doc
}

func toInt(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case time.Duration:
		return int64(v)
	}
	return 0
}

func toStrings(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}
