package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
)

// stage holds the servers, the pipeline file and what the acts have done so far.
type stage struct {
	binary, dir, file string

	mysql   *services.MySQL
	redis   *services.Redis
	nginx   *services.Nginx
	search  *services.Elasticsearch // nil on a machine without Java and Maven
	collect string                  // address of the http source

	db    *sql.DB
	cache *redis.Client

	worker *worker
	shop   *shop
}

// openStage starts the servers and writes the pipeline file.
func openStage(ctx context.Context, binary, dir string) (s *stage, err error) {
	s = &stage{binary: binary, dir: dir, file: filepath.Join(dir, "shop.yaml")}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.mysql, err = services.StartMySQL(ctx, services.Options{}); err != nil {
		return nil, err
	}
	say("MySQL          %s", s.mysql.Addr)
	if s.redis, err = services.StartRedis(ctx, services.Options{}); err != nil {
		return nil, err
	}
	say("Redis          %s", s.redis.Addr)
	if s.nginx, err = services.StartNginx(ctx, services.NginxOptions{}); err != nil {
		return nil, err
	}
	say("nginx          %s", s.nginx.Addr)
	s.search, err = services.StartElasticsearch(ctx, services.Options{})
	var missing *services.Unavailable
	switch {
	case errors.As(err, &missing):
		say("Elasticsearch  left out: %v", missing)
	case err != nil:
		return nil, err
	default:
		say("Elasticsearch  %s", s.search.Addr)
	}
	if s.db, err = sql.Open("mysql", s.mysql.DSN("", "app")+"?parseTime=false"); err != nil {
		return nil, err
	}
	s.cache = redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	if s.collect, err = freeAddress(); err != nil {
		return nil, err
	}
	return s, s.writePipeline()
}

// close ends everything, in reverse.
func (s *stage) close() {
	if s.worker != nil {
		s.worker.kill()
	}
	if s.cache != nil {
		s.cache.Close()
	}
	if s.db != nil {
		s.db.Close()
	}
	if s.search != nil {
		s.search.Close()
	}
	if s.nginx != nil {
		s.nginx.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	if s.mysql != nil {
		s.mysql.Close()
	}
}

var pipeline = template.Must(template.New("").Parse(`version: 1
pipeline: shop
journal: {dir: {{.Dir}}/journal}
sources:
  - name: shop-db
    stream: shop.changes
    mysql: {addr: "{{.MySQL}}", user: repl, password: {env: SHOP_DB_PASSWORD}, tables: ["shop.*"], start: snapshot}
  - name: web
    stream: web.access
    nginx: {paths: ["{{.AccessLog}}"], format: combined}
  - name: app
    stream: app.events
    http: {listen: "{{.Collect}}", path: /collect, time_field: ts, id_field: id}
sinks:
{{- if .Search}}
  - name: search
    streams: [shop.changes]
    elasticsearch: {urls: ["{{.Search}}"], index: "shop-{table}", id: "{key}"}
{{- end}}
  - name: cache
    streams: [shop.changes]
    where: table == "orders" && status != "draft"
    redis: {addr: "{{.Redis}}", key: "order:{id}", type: hash}
  - name: archive
    streams: [web.access, app.events]
    order: {max_out_of_order: 2s, idle_after: 2s}
    file: {path: "{{.Dir}}/out/{stream}/{yyyy-MM-dd}.ndjson.zst", roll: {size: 64MiB, time: 5s}}
`))

func (s *stage) writePipeline() error {
	var b strings.Builder
	search := ""
	if s.search != nil {
		search = s.search.URL()
	}
	err := pipeline.Execute(&b, map[string]string{
		"Dir": s.dir, "MySQL": s.mysql.Addr, "Redis": s.redis.Addr, "Search": search,
		"AccessLog": s.nginx.AccessLog(), "Collect": s.collect,
	})
	if err != nil {
		return err
	}
	title("One file describes the pipeline: %s", s.file)
	for line := range strings.Lines(b.String()) {
		fmt.Print("   ", line)
	}
	return os.WriteFile(s.file, []byte(b.String()), 0o600)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// until tries check until it returns nil or the time is over; the last error is
// the answer then.
func until(ctx context.Context, patience time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", patience, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
