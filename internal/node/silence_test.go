package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/internal/shop"
)

// A node that is frozen closes no connection. The worker notices by itself, and goes on with the node that leads now.
func TestASourceGoesOnWhileTheLeaderIsSilent(t *testing.T) {
	t.Parallel()
	nodes := startServers(t, servers.Options{})
	binary := shop.Binary{Path: binaryPath, Dir: t.TempDir()}
	collect, file := services.AddressForTest(t), filepath.Join(binary.Dir, "events.yaml")
	text := fmt.Sprintf(`version: 1
pipeline: silence
journal: {brokers: [%s]}
sources:
  - name: app
    stream: app.events
    http: {listen: %q, path: /collect, id_field: id}
sinks:
  - name: archive
    streams: [app.events]
    file: {path: "./out/{yyyy-MM-dd}.ndjson", roll: {time: 1h}}
`, strings.Join(nodes.Seeds(), ", "), collect)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := binary.Run(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	post := func(id string) {
		t.Helper()
		err := shop.Until(t.Context(), time.Minute, func(ctx context.Context) error { return postEvent(ctx, collect, id) })
		if err != nil {
			t.Fatalf("event %s: %v", id, w.Because(err))
		}
	}
	post("before")
	leader := leaderOf(t, nodes, "app.events", 0)
	if err := leader.Pause(); err != nil {
		t.Fatal(err)
	}
	post("during")
	log, err := os.ReadFile(filepath.Join(binary.Dir, "daybook.log"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "a server of the journal is silent"; !strings.Contains(string(log), want) {
		t.Errorf("the worker's log does not say %q:\n%s", want, w.LogTail())
	}
	if err := leader.Resume(); err != nil {
		t.Fatal(err)
	}
	post("after")
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := binary.Once(t.Context(), "run", file, "--once", "--only", "archive"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := eventsIn(t, binary.Dir), "before during after"; got != want {
		t.Errorf("the files hold events %q, want %q", got, want)
	}
}

func postEvent(ctx context.Context, collect, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+collect+"/collect", strings.NewReader(fmt.Sprintf(`{"id":%q}`, id)))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the source answers %s", resp.Status)
	}
	return nil
}

// eventsIn returns the ids in the files that a sink has finished, in order.
func eventsIn(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "out", "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var event struct{ ID string }
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatalf("%s: %q: %v", f, line, err)
			}
			ids = append(ids, event.ID)
		}
	}
	return strings.Join(ids, " ")
}
