package nginx

import (
	"bytes"
	"strings"
)

// class is what is known of a variable's values. It lets a line be cut at the right
// place where the text between two variables occurs in a value as well.
type class int

const (
	classText      class = iota // anything
	classNumber                 // a number, "-", nothing, or a list of these
	classTimeLocal              // 29/Nov/2026:12:00:00 +0100
	classTimeISO                // 2026-11-29T12:00:00+01:00
	classMsec                   // 1796040000.123
	classToken                  // no blank and no quote
	classHost                   // a token without a slash
	classPath                   // begins with a slash, "*" or a scheme
	classIsArgs                 // "?" or nothing
	classArgs                   // what follows it
)

// classOf knows nginx's own variables.
func classOf(name string) class {
	switch name {
	case "time_local":
		return classTimeLocal
	case "time_iso8601":
		return classTimeISO
	case "msec":
		return classMsec
	case "status", "body_bytes_sent", "bytes_sent", "bytes_received", "request_length", "request_time",
		"connection", "connection_requests", "connection_time", "connections_active", "connections_reading",
		"connections_waiting", "connections_writing", "content_length", "server_port", "remote_port", "pid",
		"proxy_protocol_port", "proxy_protocol_server_port", "gzip_ratio", "limit_rate", "session_time",
		"tcpinfo_rtt", "tcpinfo_rttvar", "tcpinfo_snd_cwnd", "tcpinfo_rcv_space":
		return classNumber
	case "upstream_status", "upstream_response_time", "upstream_connect_time", "upstream_header_time",
		"upstream_queue_time", "upstream_first_byte_time", "upstream_session_time",
		"upstream_response_length", "upstream_bytes_sent", "upstream_bytes_received":
		return classNumber
	case "remote_addr", "realip_remote_addr", "server_addr", "proxy_protocol_addr", "request_method", "scheme",
		"server_protocol", "request_id", "hostname", "pipe", "https", "ssl_protocol", "ssl_cipher", "nginx_version":
		return classToken
	case "host", "server_name":
		return classHost
	case "uri", "document_uri", "request_uri":
		return classPath
	case "is_args":
		return classIsArgs
	case "args", "query_string":
		return classArgs
	}
	return classText
}

// endsBefore reports whether a value of c that is followed directly by one of next
// has a certain end: the first byte that can't belong to it.
func (c class) endsBefore(next class) bool {
	switch c {
	case classHost:
		return next == classPath
	case classPath:
		return next == classIsArgs
	case classIsArgs:
		return next == classArgs || next == classText
	}
	return false
}

// run returns how many bytes at the front of b can belong to a value of c that is
// followed directly by another variable; see endsBefore.
func (c class) run(b []byte) int {
	end := -1
	switch c {
	case classHost:
		end = bytes.IndexByte(b, '/')
	case classPath:
		end = bytes.IndexAny(b, "? ")
	case classIsArgs:
		if len(b) > 0 && b[0] == '?' {
			return 1
		}
		return 0
	}
	if end < 0 {
		return len(b)
	}
	return end
}

// valid reports whether v can be a value of c.
func (c class) valid(v []byte) bool {
	switch c {
	case classNumber:
		return isNumbers(v)
	case classTimeLocal, classTimeISO, classMsec:
		_, ok := parseTime(v)
		return ok
	case classToken:
		return !bytes.ContainsAny(v, " \t\"")
	case classHost:
		return !bytes.ContainsAny(v, " \t\"/")
	case classIsArgs:
		return len(v) == 0 || string(v) == "?"
	}
	return true
}

// isNumbers accepts a number, nothing, a dash, and what nginx writes when a request
// went to several servers: "0.010, 0.020 : -".
func isNumbers(v []byte) bool {
	if len(v) == 0 {
		return true
	}
	for len(v) > 0 {
		one, rest, more := cutList(v)
		if !isNumber(one) && string(one) != "-" || more && len(rest) == 0 {
			return false
		}
		v = rest
	}
	return true
}

// cutList cuts at the first ", " or " : ".
func cutList(v []byte) (one, rest []byte, more bool) {
	comma, colon := bytes.Index(v, []byte(", ")), bytes.Index(v, []byte(" : "))
	switch {
	case comma >= 0 && (colon < 0 || comma < colon):
		return v[:comma], v[comma+2:], true
	case colon >= 0:
		return v[:colon], v[colon+3:], true
	}
	return v, nil, false
}

// isNumber accepts digits with at most one point inside, and a sign.
func isNumber(v []byte) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(string(v), "-"), ".")
	return isDigits(whole) && (!point || isDigits(fraction))
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
