package http

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// clockReader turns a JSON value into an event time.
type clockReader struct {
	unit string         // none, s, ms, us, ns
	zone *time.Location // of text without a zone; nil refuses it
}

// Event times must lie in these years: Kafka's protocol has no time before 1970,
// and a unit mistaken by a factor of a thousand falls outside them.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// read returns microseconds since 1970 UTC. Digits below a microsecond are cut off;
// the record's value still has them.
func (c clockReader) read(raw jsontext.Value) (micros int64, s shift, err error) {
	switch raw.Kind() {
	case '0':
		micros, err = c.number(string(raw))
	case '"':
		text, uerr := jsontext.AppendUnquote(nil, raw)
		if uerr != nil {
			return 0, exact, errors.New("is not a time")
		}
		micros, s, err = c.text(string(text))
	default:
		return 0, exact, fmt.Errorf("is %s, want a time", kindName(raw.Kind()))
	}
	if err == nil && (micros < earliest.UnixMicro() || micros > latest.UnixMicro()) {
		err = fmt.Errorf("%s is not between the years 1970 and 9999%s", raw, c.unitHint())
	}
	return micros, s, err
}

func (c clockReader) unitHint() string {
	if c.unit == "none" {
		return ""
	}
	return fmt.Sprintf(": is it in the declared unit, %s?", c.unit)
}

// text reads RFC 3339 (with a space for the T as well), the same without a zone,
// or digits, which some clients put in quotes.
func (c clockReader) text(s string) (int64, shift, error) {
	if t, err := time.Parse(time.RFC3339Nano, withT(s)); err == nil {
		return t.UnixMicro(), exact, nil
	}
	if t, err := time.Parse("2006-01-02T15:04:05.999999999", withT(s)); err == nil {
		if c.zone == nil {
			return 0, exact, fmt.Errorf("%q has no zone and time_zone is not set", s)
		}
		l := local{t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()}
		at, s := l.instant(c.zone)
		return at.UnixMicro(), s, nil
	}
	if jsontext.Value(s).Kind() == '0' && jsontext.Value(s).IsValid() {
		micros, err := c.number(s)
		return micros, exact, err
	}
	return 0, exact, fmt.Errorf("%q is not a time: want RFC 3339, such as 2026-09-01T12:00:00Z", clip(s))
}

func withT(s string) string {
	if len(s) > 10 && s[10] == ' ' {
		return s[:10] + "T" + s[11:]
	}
	return s
}

// digitsBelowSecond is how many of a unit's digits lie below a second.
var digitsBelowSecond = map[string]int{"s": 0, "ms": 3, "us": 6, "ns": 9}

// number reads a count of the declared unit, exactly: a float64 of seconds would
// lose microseconds.
func (c clockReader) number(s string) (int64, error) {
	digits, ok := digitsBelowSecond[c.unit]
	if !ok {
		return 0, fmt.Errorf("%s is a number and time_unit does not say of what", clip(s))
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	exp := 0
	if exponent != "" {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil || exp < -30 || exp > 30 {
			return 0, fmt.Errorf("%s is out of range", clip(s))
		}
	}
	if len(mantissa) > 64 {
		return 0, fmt.Errorf("%s is too long for a time", clip(s))
	}
	r, ok := new(big.Rat).SetString(mantissa)
	if !ok {
		return 0, fmt.Errorf("%s is not a number", clip(s))
	}
	r.Mul(r, power(exp+6-digits))
	micros := new(big.Int).Div(r.Num(), r.Denom()) // toward the past
	if !micros.IsInt64() {
		return 0, fmt.Errorf("%s is out of range%s", clip(s), c.unitHint())
	}
	return micros.Int64(), nil
}

// power returns ten to the n.
func power(n int) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil)
	r := new(big.Rat).SetInt(p)
	if n < 0 {
		r.Inv(r)
	}
	return r
}

// clip keeps a client's text in a message short.
func clip(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
