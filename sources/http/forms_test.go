package http_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachFormOfBodyGivesItsObjects(t *testing.T) {
	t.Parallel()
	const big = `{"n":123456789012345678901234567890.10,"u":"\u00e9é\/","e":1E+2}`
	cases := []struct {
		name, media, body string
		want              []string
	}{
		{"one object", "application/json", `{"a":1}`, []string{`{"a":1}`}},
		{"array", "application/json; charset=utf-8", ` [ {"a" : 1} , {"b":[1, 2]} ] `, []string{`{"a":1}`, `{"b":[1,2]}`}},
		{"empty array", "application/json", `[]`, nil},
		{"structured suffix", "application/cloudevents+json", `{"a":1}`, []string{`{"a":1}`}},
		{"lines", "application/x-ndjson", "{\"a\":1}\n\n  {\"b\":2}\r\n{\"c\":3}", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}},
		{"told by the body: object over lines", "", "{\n\"a\":\n1}\n", []string{`{"a":1}`}},
		{"told by the body: array", "text/plain;charset=UTF-8", `[{"a":1}]`, []string{`{"a":1}`}},
		{"told by the body: lines", "", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		{"byte order mark", "application/json", "\xef\xbb\xbf{\"a\":1}", []string{`{"a":1}`}},
		{"numbers and texts stay as sent", "application/json", big, []string{big}},
		{"half a character of a browser", "application/json", `{"a":"\ud83d"}`, []string{`{"a":"\ud83d"}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			s.wantStored(s.request("POST", "/", c.body, "Content-Type", c.media), len(c.want), 0)
			if diff := cmp.Diff(c.want, s.values()); diff != "" {
				t.Errorf("values differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMalformedElementIsNamedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, media, body string
		status            int
		field             string
		place             float64
		words             string
	}{
		{"half a line", "application/x-ndjson", "{\"a\":1}\n{\"b\":", 400, "line", 2, "ends in the middle"},
		{"half an array", "application/json", `[{"a":1},{"b":2}`, 400, "", 0, "ends in the middle"},
		{"half an object", "application/json", `{"a":1`, 400, "", 0, "ends in the middle"},
		{"number in an array", "application/json", `[{"a":1},2]`, 400, "index", 1, "is a number, want an object"},
		{"null in lines", "application/x-ndjson", "{}\nnull\n", 400, "line", 2, "is null, want an object"},
		{"array in an array", "application/json", `[[]]`, 400, "index", 0, "is an array"},
		{"a text alone", "application/json", `"x"`, 400, "", 0, "want an object"},
		{"nothing", "application/json", " \n", 400, "", 0, "empty"},
		{"two objects as JSON", "application/json", `{"a":1}{"b":2}`, 400, "", 0, "x-ndjson"},
		{"two objects on a line", "application/x-ndjson", "{}\n{}{}\n", 400, "line", 2, "goes on after its object"},
		{"after the array", "application/json", `[{}] x`, 400, "", 0, "goes on after its array"},
		{"duplicate key", "application/json", `[{"a":1},{"b":{"k":1,"\u006b":2}}]`, 400, "index", 1, `the key "k" stands twice`},
		{"not UTF-8", "application/json", "{\"a\":\"\xff\"}", 400, "", 0, "not UTF-8 at byte 6"},
		{"trailing comma", "application/json", `{"a":1,}`, 400, "", 0, "is not JSON"},
		{"NaN", "application/json", `{"a":NaN}`, 400, "", 0, "is not JSON"},
		{"other charset", "application/json; charset=utf-16", `{}`, 415, "", 0, "UTF-8"},
		{"form", "application/x-www-form-urlencoded", `a=1`, 415, "", 0, "send application/json"},
		{"deep", "application/json", `{"a":` + strings.Repeat("[", 100_000), 400, "", 0, "depth"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			a := s.request("POST", "/", c.body, "Content-Type", c.media)
			s.want(a, c.status, c.words)
			if c.field != "" && a.body[c.field] != c.place {
				t.Errorf("got %v, want %s %v", a.body, c.field, c.place)
			}
			s.wantEmpty()
		})
	}
}

func TestCompressedBodiesAreUnpacked(t *testing.T) {
	t.Parallel()
	for encoding, pack := range map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"Deflate": func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 1); return f },
	} {
		s := serve(t, "")
		s.wantStored(s.post(packed(t, pack, `[{"a":1}]`), "Content-Encoding", encoding), 1, 0)
		s.want(s.post(packed(t, pack, `[{"a":1}]`)[:12], "Content-Encoding", encoding), 400, "can't be read")
	}
	s := serve(t, "")
	s.want(s.post("{}", "Content-Encoding", "br"), 415, "send gzip")
	s.wantEmpty()
}

func TestAGzipBombCostsNoMoreThanALargeBody(t *testing.T) {
	t.Parallel()
	s := serve(t, ", max_body: 1MiB")
	bomb := packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, strings.Repeat(" ", 64<<20))
	if len(bomb) >= 1<<20 {
		t.Fatalf("the bomb has %d bytes, it would be refused unopened", len(bomb))
	}
	s.want(s.post(bomb, "Content-Encoding", "gzip"), 413, "larger than 1 MiB")
	s.wantEmpty()
}

func packed(t *testing.T, pack func(io.Writer) io.WriteCloser, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := pack(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
