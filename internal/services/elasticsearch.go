package services

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// Elasticsearch is a running node of one, without security.
type Elasticsearch struct {
	*Server
}

// URL returns the node's address as a URL without a slash at the end.
func (e *Elasticsearch) URL() string { return "http://" + e.Addr }

// StartElasticsearch installs Elasticsearch 8.19 if needed, which takes a JDK and
// Maven, and starts a node. Options.Args are settings, such as
// "http.max_content_length=64kb".
//
// The node is the real server (indices, mappings, bulk, search, external
// versions, templates, data streams, back pressure), put together from its
// published artifacts. What is not among those is not there: scripts, ingest
// processors, security, reindex and delete by query, and a few field types such
// as scaled_float.
//
// Variant long compiles hot code harder, for long loads: it starts slower.
func StartElasticsearch(ctx context.Context, o Options) (*Elasticsearch, error) {
	jvm := "-XX:TieredStopAtLevel=1"
	switch o.Variant {
	case "":
	case "long":
		jvm = "-XX:TieredStopAtLevel=4"
	default:
		return nil, fmt.Errorf("elasticsearch has no variant %q", o.Variant)
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	install, err := elasticsearchServer().install(ctx, c)
	if err != nil {
		return nil, err
	}
	return startElasticsearch(ctx, c, install, o, jvm)
}

// startElasticsearch starts a node of the installation with a further option for
// its JVM.
func startElasticsearch(ctx context.Context, c cache, install string, o Options, jvm string) (*Elasticsearch, error) {
	s, err := newServer(ctx, c, "elasticsearch", o)
	if err != nil {
		return nil, err
	}
	e := &Elasticsearch{Server: s}
	args := append([]string{
		"-Xms512m", "-Xmx512m", "-Xss1m", "-XX:+UseG1GC", jvm, "-XX:MaxDirectMemorySize=256m",
		"-XX:+ExitOnOutOfMemoryError", "-XX:-OmitStackTraceInFastThrow", "-Dfile.encoding=UTF-8",
		"-Djava.awt.headless=true", "-Djava.io.tmpdir=" + filepath.Join(s.Dir, "tmp"),
		"-Dio.netty.noUnsafe=true", "-Dio.netty.noKeySetOptimization=true", "-Dio.netty.recycler.maxCapacityPerThread=0",
		"-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true",
		"TestNode", filepath.Join(install, "home"),
		"path.data=" + filepath.Join(s.Dir, "data"), "path.logs=" + filepath.Join(s.Dir, "logs"),
		"cluster.name=daybook-test", "node.name=daybook-test", "discovery.type=single-node",
		"network.host=127.0.0.1", fmt.Sprintf("http.port=%d", s.port.port), "transport.port=0",
		// A build machine's full disk would make every index read-only.
		"cluster.routing.allocation.disk.threshold_enabled=false",
	}, o.Args...)
	err = e.open(ctx, launch{
		name: "elasticsearch",
		command: func(context.Context) (*exec.Cmd, error) {
			if err := os.MkdirAll(filepath.Join(s.Dir, "tmp"), 0o755); err != nil {
				return nil, err
			}
			return javaCommand(context.Background(), install, args...)
		},
		ready: e.healthy,
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// healthy asks whether all primary shards are there.
func (e *Elasticsearch) healthy(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL()+"/_cluster/health?wait_for_status=yellow&timeout=2s", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the node answers %s: %s", resp.Status, body)
	}
	return nil
}
