package nginx

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func parserOf(t *testing.T, format string, e escape) *parser {
	t.Helper()
	tmpl, err := compile(format, e, "")
	if err != nil {
		t.Fatalf("compiling %q: %v", format, err)
	}
	return newParser(tmpl)
}

const noon = int64(1_796_040_000_000_000) // 2026-11-30T12:00:00Z

func TestLinesOfTheCombinedFormat(t *testing.T) {
	const lead = `10.0.0.1 - - [30/Nov/2026:13:00:00 +0100] `
	const members = `{"remote_addr":"10.0.0.1","remote_user":"-","time_local":"30/Nov/2026:13:00:00 +0100",`
	long := "/" + strings.Repeat("a%20", 2048)
	cases := []struct{ name, line, want string }{
		{"plain", lead + `"GET /a?b=c HTTP/1.1" 200 612 "-" "curl/8"`,
			members + `"request":"GET /a?b=c HTTP/1.1","request_method":"GET","request_uri":"/a?b=c","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":612,"http_referer":"-","http_user_agent":"curl/8"}`},
		{"TLS bytes sent to a plain port", lead + `"\x16\x03\x01\x00\xF5" 400 157 "-" "-"`,
			members + `"request":"\\x16\\x03\\x01\\x00\\xF5","status":400,"body_bytes_sent":157,"http_referer":"-","http_user_agent":"-","escaped":["request"]}`},
		{"control characters that are UTF-8", lead + `"\x16\x03" 400 157 "-" "\xC3\xA9"`,
			members + `"request":"\u0016\u0003","status":400,"body_bytes_sent":157,"http_referer":"-","http_user_agent":"é"}`},
		{"no request", lead + `"" 400 0 "-" "-"`,
			members + `"request":"","status":400,"body_bytes_sent":0,"http_referer":"-","http_user_agent":"-"}`},
		{"absolute URI", lead + `"GET http://evil.example/x HTTP/1.1" 200 1 "-" "-"`,
			members + `"request":"GET http://evil.example/x HTTP/1.1","request_method":"GET","request_uri":"http://evil.example/x","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":1,"http_referer":"-","http_user_agent":"-"}`},
		{"blank in the URI", lead + `"GET /a b HTTP/1.1" 400 1 "-" "-"`,
			members + `"request":"GET /a b HTTP/1.1","status":400,"body_bytes_sent":1,"http_referer":"-","http_user_agent":"-"}`},
		{"quote", lead + `"GET /\x22x\x5C HTTP/1.1" 200 1 "-" "a \x22b\x22"`,
			members + `"request":"GET /\"x\\ HTTP/1.1","request_method":"GET","request_uri":"/\"x\\","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":1,"http_referer":"-","http_user_agent":"a \"b\""}`},
		{"long URI", lead + `"GET ` + long + ` HTTP/1.1" 414 0 "-" "-"`,
			members + `"request":"GET ` + long + ` HTTP/1.1","request_method":"GET","request_uri":"` + long + `","server_protocol":"HTTP/1.1","status":414,"body_bytes_sent":0,"http_referer":"-","http_user_agent":"-"}`},
		{"HTTP/0.9", lead + `"GET /" 009 5 "-" "-"`,
			members + `"request":"GET /","status":9,"body_bytes_sent":5,"http_referer":"-","http_user_agent":"-"}`},
		{"last field missing", lead + `"GET / HTTP/1.1" 200 612 "-"`,
			members + `"request":"GET / HTTP/1.1","request_method":"GET","request_uri":"/","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":612,"line":"10.0.0.1 - - [30/Nov/2026:13:00:00 +0100] \"GET / HTTP/1.1\" 200 612 \"-\"","unparsed":"ends within $http_referer: no \"\\\" \\\"\" after byte 68"}`},
		{"a user with the text between fields in his name", `10.0.0.1 - a [b [30/Nov/2026:13:00:00 +0100] "GET / HTTP/1.1" 200 1 "-" "-"`,
			`{"remote_addr":"10.0.0.1","remote_user":"a [b","time_local":"30/Nov/2026:13:00:00 +0100","request":"GET / HTTP/1.1","request_method":"GET","request_uri":"/","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":1,"http_referer":"-","http_user_agent":"-"}`},
		{"an IPv6 client", `2001:db8::1 - - [30/Nov/2026:13:00:00 +0100] "GET / HTTP/1.1" 200 1 "-" "-"`,
			`{"remote_addr":"2001:db8::1","remote_user":"-","time_local":"30/Nov/2026:13:00:00 +0100","request":"GET / HTTP/1.1","request_method":"GET","request_uri":"/","server_protocol":"HTTP/1.1","status":200,"body_bytes_sent":1,"http_referer":"-","http_user_agent":"-"}`},
	}
	p := parserOf(t, "combined", escapeDefault)
	for _, c := range cases {
		got := p.parse([]byte(c.line))
		if diff := cmp.Diff(c.want, string(got.value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if !jsontext.Value(got.value).IsValid() {
			t.Errorf("%s: %s is not JSON", c.name, got.value)
		}
		if !got.timed || got.time != noon {
			t.Errorf("%s: got the time %d, want %d", c.name, got.time, noon)
		}
	}
}

func TestWhatDoesNotFitIsKeptWithTheReason(t *testing.T) {
	cases := []struct{ name, line, want string }{
		{"empty", "", `{"line":"","unparsed":"is empty"}`},
		{"something else", "Hello", `{"line":"Hello","unparsed":"ends within $remote_addr: no \" - \" after byte 0"}`},
		{"zeros", "\x00\x00", `{"line":"\u0000\u0000","unparsed":"ends within $remote_addr: no \" - \" after byte 0"}`},
		{"not UTF-8", "\xff\"\\é", `{"line":"\\xFF\\x22\\x5C\\xC3\\xA9","unparsed":"ends within $remote_addr: no \" - \" after byte 0","escaped":["line"]}`},
	}
	p := parserOf(t, "combined", escapeDefault)
	for _, c := range cases {
		got := p.parse([]byte(c.line))
		if diff := cmp.Diff(c.want, string(got.value)); diff != "" || got.whole {
			t.Errorf("%s: whole %v (-want +got):\n%s", c.name, got.whole, diff)
		}
	}
	more := p.parse([]byte(`1.1.1.1 - - [30/Nov/2026:13:00:00 +0100] "GET / HTTP/1.1" 200 1 "-" "-" "extra"`))
	if more.whole && !strings.Contains(string(more.value), `"http_user_agent":"-\" \"extra"`) {
		t.Errorf("a line with a field more is taken for a whole one: %s", more.value)
	}
}

func TestFormatsInNginxSyntax(t *testing.T) {
	cases := []struct {
		name, format string
		escape       escape
		line, want   string
		time         int64
	}{
		{"directive over lines", "log_format main '$remote_addr [$time_iso8601] '\n    \"\\\"$request_method $uri\\\" \" # comment\n '$status';", escapeDefault,
			`1.1.1.1 [2026-11-30T12:00:00+00:00] "GET /x" 204`,
			`{"remote_addr":"1.1.1.1","time_iso8601":"2026-11-30T12:00:00+00:00","request_method":"GET","uri":"/x","status":204}`, noon},
		{"braces and msec", `${msec}s $status`, escapeDefault, `1796040000.123s 200`, `{"msec":1796040000.123,"status":200}`, noon + 123000},
		{"microseconds", `$msec`, escapeDefault, `1796040000.123456`, `{"msec":1796040000.123456}`, noon + 123456},
		{"several servers", `$msec $upstream_addr "$upstream_response_time" "$upstream_status"`, escapeDefault,
			`1796040000.000 10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 "0.010, - : 0.3" "502, 502 : 200"`,
			`{"msec":1796040000.000,"upstream_addr":"10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80","upstream_response_time":[0.010,null,0.3],"upstream_response_time_text":"0.010, - : 0.3","upstream_status":[502,502,200],"upstream_status_text":"502, 502 : 200"}`, noon},
		{"no server", `$msec $upstream_response_time $gzip_ratio`, escapeDefault, `1796040000.000 - -`,
			`{"msec":1796040000.000,"upstream_response_time":null,"gzip_ratio":null}`, noon},
		{"neighbours", `$msec $scheme://$host$uri$is_args$args $status`, escapeDefault, `1796040000.000 https://a.example/x/y?b=c/d 200`,
			`{"msec":1796040000.000,"scheme":"https","host":"a.example","uri":"/x/y","is_args":"?","args":"b=c/d","status":200}`, noon},
		{"neighbours without arguments", `$msec $host$uri$is_args$args $status`, escapeDefault, `1796040000.000 a.example/x/y 200`,
			`{"msec":1796040000.000,"host":"a.example","uri":"/x/y","is_args":"","args":"","status":200}`, noon},
		{"a variable twice, and one that is named like ours", `$msec $status $status $line`, escapeDefault, `1796040000.000 200 201 x`,
			`{"msec":1796040000.000,"status":200,"status_2":201,"line_2":"x"}`, noon},
		{"escape json in a text", `log_format x escape=json '$msec "$http_user_agent"';`, escapeDefault, `1796040000.000 "a \"b\" \\ \u001f\n é"`,
			`{"msec":1796040000.000,"http_user_agent":"a \"b\" \\ \u001F\n é"}`, noon},
		{"no escape", `$msec "$http_user_agent" $status`, escapeNone, `1796040000.000 "a "b" \x22" 200`,
			`{"msec":1796040000.000,"http_user_agent":"a \"b\" \\x22","status":200}`, noon},
		{"IPv6 and port", `$msec $remote_addr:$remote_port`, escapeDefault, `1796040000.000 2001:db8::1:443`,
			`{"msec":1796040000.000,"remote_addr":"2001:db8::1","remote_port":443}`, noon},
	}
	for _, c := range cases {
		got := parserOf(t, c.format, c.escape).parse([]byte(c.line))
		if diff := cmp.Diff(c.want, string(got.value)); diff != "" || !got.whole || got.time != c.time {
			t.Errorf("%s: whole %v, time %d (-want +got):\n%s", c.name, got.whole, got.time, diff)
		}
	}
}

func TestAFormatThatIsAJSONObjectGivesThatObject(t *testing.T) {
	const format = `log_format j escape=json '{"ts":$msec,"req":{"m":"$request_method","ua":"$http_user_agent"},"rt":$upstream_response_time,"s":$status}';`
	cases := []struct{ name, line, want string }{
		{"as it is", `{"ts":1796040000.123,"req":{"m":"GET","ua":"a \"b\""},"rt":0.010,"s":200}`,
			`{"ts":1796040000.123,"req":{"m":"GET","ua":"a \"b\""},"rt":0.010,"s":200}`},
		{"white space", `{"ts":1796040000.123,"req":{"m":"GET","ua":"\u001f"},"rt":0.010,"s":200}`,
			`{"ts":1796040000.123,"req":{"m":"GET","ua":"\u001f"},"rt":0.010,"s":200}`},
		{"nothing where a number should be", `{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":,"s":200}`,
			`{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":null,"s":200}`},
		{"a dash where a number should be", `{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":-,"s":009}`,
			`{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":null,"s":9}`},
		{"two numbers where one should be", `{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":0.1, 0.2,"s":200}`,
			`{"ts":1796040000.123,"req":{"m":"","ua":""},"rt":"0.1, 0.2","s":200}`},
		{"not UTF-8", "{\"ts\":1796040000.123,\"req\":{\"m\":\"GET\",\"ua\":\"\xff\\\"x\"},\"rt\":1,\"s\":200}",
			`{"ts":1796040000.123,"req":{"m":"GET","ua":"\\xFF\\x22x"},"rt":1,"s":200,"escaped":["http_user_agent"]}`},
	}
	p := parserOf(t, format, escapeDefault)
	for _, c := range cases {
		got := p.parse([]byte(c.line))
		if diff := cmp.Diff(c.want, string(got.value)); diff != "" || !got.whole || got.time != noon+123000 {
			t.Errorf("%s: whole %v, time %d (-want +got):\n%s", c.name, got.whole, got.time, diff)
		}
	}
	cut := p.parse([]byte(`{"ts":1796040000.123,"req":{"m":"GET"`))
	if want := `{"line":"{\"ts\":1796040000.123,\"req\":{\"m\":\"GET\"","unparsed":"ends within $request_method: no \"\\\",\\\"ua\\\":\\\"\" after byte 33"}`; string(cut.value) != want {
		t.Errorf("a line cut short: got %s, want %s", cut.value, want)
	}
	if !cut.timed || cut.time != noon+123000 {
		t.Errorf("a line cut short has its time in front; got %d", cut.time)
	}
}

func TestFormatsThatCantBeReadAreRefused(t *testing.T) {
	for format, want := range map[string]string{
		"":                             "no variable",
		"just text":                    "no variable",
		"$scheme$host":                 "nothing between $scheme and $host",
		"$http_a$http_b":               "nothing between $http_a and $http_b",
		"$ x":                          "without the name of a variable",
		"${status":                     "brace of ${status is not closed",
		"log_format x;":                "a name and a format",
		"log_format x '$status":        "quote ' of log_format is not closed",
		"log_format x '$status'; y":    "after the semicolon",
		"log_format x escape=xml '$a'": "want default, json or none",
		`{"a":"$status","a":"$uri"}`:   `the key "a" stands twice`,
		`{"a":"$status"`:               "begins like a JSON object",
		"$status\n$uri":                "line break",
	} {
		if _, err := compile(format, escapeDefault, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %q", format, err, want)
		}
	}
	if _, err := compile("$status", escapeDefault, "msec"); err == nil || !strings.Contains(err.Error(), "no variable of the format") {
		t.Errorf("got %v for a time_field that the format has not", err)
	}
}

func TestTimesThatCantBeAreNoTimes(t *testing.T) {
	for _, s := range []string{"", "-", "31/Feb/2026:00:00:00 +0000", "29/Nov/2026:24:00:00 +0000", "29/Nox/2026:00:00:00 +0000",
		"29/Nov/2026:00:00:00 00000", "2026-11-29T00:00:00", "12.34.56", "1796040000.", "123456789012", "x"} {
		if micros, ok := parseTime([]byte(s)); ok && s != "1796040000." {
			t.Errorf("%q was read as %d", s, micros)
		}
	}
	if micros, ok := parseTime([]byte("29/Feb/2028:23:59:60 -0330")); !ok || micros != 1835494200_000_000 {
		t.Errorf("got %d, %v", micros, ok)
	}
}

// A value that repeats the text between the fields must not cost more than a second look.
func TestAnAmbiguousLineIsGivenUpEarly(t *testing.T) {
	format := strings.Repeat("$http_a - ", 12) + "$status"
	p := parserOf(t, format, escapeDefault)
	got := p.parse([]byte(strings.Repeat("x - ", 20_000)))
	if got.whole || !strings.Contains(string(got.value), "too ambiguous") {
		t.Errorf("got %.100s", got.value)
	}
}

func FuzzParseKeepsEveryLine(f *testing.F) {
	f.Add(`10.0.0.1 - - [30/Nov/2026:13:00:00 +0100] "GET / HTTP/1.1" 200 612 "-" "curl"`)
	f.Add("{\"ts\":1,\"ua\":\"\xff\"}")
	text, err := compile("combined", escapeDefault, "")
	if err != nil {
		f.Fatal(err)
	}
	object, err := compile(`{"ts":$msec,"ua":"$http_user_agent"}`, escapeJSON, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, tmpl := range []*template{text, object} {
			got := newParser(tmpl).parse([]byte(line))
			if !jsontext.Value(got.value).IsValid() {
				t.Errorf("%q gave %s, which is not JSON", line, got.value)
			}
		}
	})
}
