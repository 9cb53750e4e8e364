package nginx

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// parser makes records' values of lines. It keeps its memory between lines, so it
// must not be shared; the values that it returns are new.
type parser struct {
	t       *template
	matcher *matcher
	escaped []string // names of what is not UTF-8 in the line at hand
}

// parsed is a line's value, and what of it is not in the value.
type parsed struct {
	value []byte
	time  int64 // event time in µs
	timed bool  // the line has one
	whole bool  // all of the line fitted the format
}

func newParser(t *template) *parser { return &parser{t: t, matcher: newMatcher(t)} }

// parse reads a line, without its line break. It never fails: what does not fit is
// kept as it is, with the reason.
func (p *parser) parse(line []byte) parsed {
	p.escaped = p.escaped[:0]
	if len(line) == 0 {
		return parsed{value: p.unparsed(nil, line, "is empty")}
	}
	spans, reason := p.matcher.match(line)
	out := parsed{whole: reason == ""}
	if at := p.t.timeField; at >= 0 && at < len(spans) {
		out.time, out.timed = parseTime(p.t.escape.unescape(line[spans[at].from:spans[at].to]))
	}
	switch {
	case !out.whole && p.t.object:
		out.value = p.unparsed(nil, line, reason)
	case !out.whole:
		out.value = p.unparsed(p.appendFields(line, spans), line, reason)
	case p.t.object:
		out.value = p.object(line, spans)
	default:
		out.value = p.close(p.appendFields(line, spans))
	}
	return out
}

// appendFields appends "{" and the members of the fields that have a span.
func (p *parser) appendFields(line []byte, spans []span) []byte {
	dst := append(make([]byte, 0, 2*len(line)+64), '{')
	for i, s := range spans {
		f := &p.t.fields[i]
		v := line[s.from:s.to]
		if f.class == classNumber || f.class == classMsec {
			dst = appendNumbers(appendKey(dst, f.key), f.key, v)
			continue
		}
		v = p.t.escape.unescape(v)
		dst = p.text(appendKey(dst, f.key), f.key, v)
		if f.key == "request" && p.t.splitRequest {
			dst = p.appendRequest(dst, v)
		}
	}
	return dst
}

// appendRequest appends the parts of a request line that has the three it should.
func (p *parser) appendRequest(dst, v []byte) []byte {
	method, rest, ok := bytes.Cut(v, []byte(" "))
	uri, protocol, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok || !ok2 || !bytes.HasPrefix(protocol, []byte("HTTP/")) || bytes.IndexByte(protocol, ' ') >= 0 || !isMethod(method) {
		return dst
	}
	dst = p.text(appendKey(dst, "request_method"), "request_method", method)
	dst = p.text(appendKey(dst, "request_uri"), "request_uri", uri)
	return p.text(appendKey(dst, "server_protocol"), "server_protocol", protocol)
}

func isMethod(v []byte) bool {
	for _, b := range v {
		if (b < 'A' || b > 'Z') && b != '_' && b != '-' {
			return false
		}
	}
	return len(v) > 0
}

func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, key...) // names of variables need no escape
	return append(dst, '"', ':')
}

// text appends a JSON text and notes under name that it is escaped.
func (p *parser) text(dst []byte, name string, v []byte) []byte {
	dst, escaped := appendText(dst, v)
	if escaped {
		p.escaped = append(p.escaped, name)
	}
	return dst
}

// appendNumbers appends a number; null for none; for several an array, and beside it
// the text, whose commas and colons say which servers were tried together.
func appendNumbers(dst []byte, key string, v []byte) []byte {
	one, rest, more := cutList(v)
	if !more {
		return appendNumber(dst, one)
	}
	dst = append(dst, '[')
	for {
		dst = appendNumber(dst, one)
		if !more {
			break
		}
		dst = append(dst, ',')
		one, rest, more = cutList(rest)
	}
	dst = append(dst, ']')
	dst, _ = appendText(appendKey(dst, key+"_text"), v)
	return dst
}

// appendNumber keeps all digits, but for zeros in front, which JSON has not (nginx
// writes the status of an HTTP/0.9 request as 009).
func appendNumber(dst, v []byte) []byte {
	if len(v) == 0 || string(v) == "-" {
		return append(dst, "null"...)
	}
	if v[0] == '-' {
		dst, v = append(dst, '-'), v[1:]
	}
	for len(v) > 1 && v[0] == '0' && v[1] != '.' {
		v = v[1:]
	}
	return append(dst, v...)
}

// unparsed closes a value whose line did not fit: the line as it is, and why.
func (p *parser) unparsed(dst, line []byte, reason string) []byte {
	if dst == nil {
		dst = append(make([]byte, 0, len(line)+64), '{')
	}
	dst = p.text(appendKey(dst, "line"), "line", line)
	dst, _ = appendText(appendKey(dst, "unparsed"), []byte(reason))
	return p.close(dst)
}

// close appends the list of escaped members, if any, and the brace.
func (p *parser) close(dst []byte) []byte {
	if len(p.escaped) > 0 {
		dst = append(appendKey(dst, "escaped"), '[')
		for i, name := range p.escaped {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendQuote(dst, name)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// object returns the value of a line whose format is a JSON object: the line itself
// where it is JSON, else the same object made anew from the values, for a bare "-"
// in the place of a number, or bytes that are not UTF-8.
func (p *parser) object(line []byte, spans []span) []byte {
	value := jsontext.Value(bytes.Clone(line))
	if value.IsValid() && value.Compact() == nil {
		return value
	}
	dst := append(make([]byte, 0, 2*len(line)), p.t.lead...)
	for i, s := range spans {
		f := &p.t.fields[i]
		v := line[s.from:s.to]
		switch {
		case f.quoted:
			dst = p.textInside(dst, f.key, p.t.escape.unescape(v))
		case f.class == classNumber && !bytes.ContainsAny(v, " "):
			dst = appendNumber(dst, v)
		default:
			dst = p.bare(dst, f.key, v)
		}
		dst = append(dst, f.after...)
	}
	value = dst
	if err := value.Compact(); err != nil {
		return p.unparsed(nil, line, fmt.Sprintf("makes no JSON: %v", err))
	}
	if len(p.escaped) == 0 {
		return value
	}
	return p.close(value[:len(value)-1])
}

// textInside appends v to a JSON text that is open.
func (p *parser) textInside(dst []byte, name string, v []byte) []byte {
	at := len(dst)
	dst = p.text(dst, name, v)
	copy(dst[at:], dst[at+1:len(dst)-1])
	return dst[:len(dst)-2]
}

// bare appends a value that stands in the object without quotes.
func (p *parser) bare(dst []byte, name string, v []byte) []byte {
	switch value := jsontext.Value(v); {
	case len(v) == 0, string(v) == "-":
		return append(dst, "null"...)
	case value.IsValid():
		return append(dst, v...)
	}
	return p.text(dst, name, p.t.escape.unescape(v))
}

// piece returns the value of a part of a line that is longer than is kept at once.
// A part of zeros, as a crash or a writer that does not append leaves it, is counted
// in place of being written out.
func (p *parser) piece(part []byte, number int, last bool) parsed {
	p.escaped = p.escaped[:0]
	dst := append(make([]byte, 0, len(part)+128), `{"piece":`...)
	dst = strconv.AppendInt(dst, int64(number), 10)
	dst = strconv.AppendBool(append(dst, `,"last":`...), last)
	if n := len(part); n > 0 && bytes.Count(part, []byte{0}) == n {
		dst = strconv.AppendInt(append(dst, `,"nul_bytes":`...), int64(n), 10)
		part = nil
	}
	return parsed{value: p.unparsed(dst, part, "is a piece of a line longer than max_line")}
}
