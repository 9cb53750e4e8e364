package services_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

func TestNginxKeepsItsLogThroughCrash(t *testing.T) {
	a := services.NginxForTest(t, services.NginxOptions{})
	b := services.NginxForTest(t, services.NginxOptions{})
	at := map[string]*services.Nginx{a.Addr: a, b.Addr: b}
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) {
			ask(t, http.MethodGet, "http://"+addr+"/", "")
			// nginx logs a request after answering it.
			eventually(t, "the request is logged", func() bool { return lines(t, at[addr].AccessLog()) == 1 })
		},
		count: func(t *testing.T, addr string) int { return lines(t, at[addr].AccessLog()) },
	}.test(t)
}

func TestNginxLogsInTheGivenFormatAndReopens(t *testing.T) {
	n := services.NginxForTest(t, services.NginxOptions{
		HTTP:   `log_format short escape=json '{"uri":"$request_uri","status":$status}';`,
		Format: "short",
		Server: `location /gone { return 410; } location / { return 204; }`,
	})
	get := func(path string, want int) {
		t.Helper()
		resp, err := http.Get(n.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != want {
			t.Errorf("GET %s: %s, want %d", path, resp.Status, want)
		}
	}
	get("/a", 204)
	old := n.AccessLog() + ".1"
	eventually(t, "the request is logged", func() bool { return lines(t, n.AccessLog()) == 1 })
	if err := os.Rename(n.AccessLog(), old); err != nil {
		t.Fatal(err)
	}
	if err := n.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The worker follows the master: until then it writes to the old file.
	asked := 1
	eventually(t, "the new log is written to", func() bool {
		get("/gone", 410)
		asked++
		return lines(t, n.AccessLog()) > 0
	})
	eventually(t, "every request is in one of the files", func() bool {
		return lines(t, old)+lines(t, n.AccessLog()) == asked
	})
	text, err := os.ReadFile(old)
	if err != nil || !bytes.HasPrefix(text, []byte(`{"uri":"/a","status":204}`+"\n")) {
		t.Errorf("the rotated log holds %q, %v", text, err)
	}
}

func lines(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}
