package shop

import (
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// PipelineOptions are what differs between one pipeline file of the shop and another.
type PipelineOptions struct {
	// Dir is where journal and output go.
	Dir string
	// Journal is the journal section; empty for an embedded one in Dir.
	Journal string
	// MaxOutOfOrder and Roll bound the archive.
	MaxOutOfOrder, Roll string
	// Partitions of shop.changes; 1 if empty.
	Partitions string
	// Changes also writes shop.changes into files, below the folder changes.
	Changes bool
}

var pipelineFile = template.Must(template.New("").Parse(`version: 1
pipeline: shop
journal: {{.Journal}}
sources:
  - name: shop-db
    stream: shop.changes
    partitions: {{.Partitions}}
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
    order: {max_out_of_order: {{.MaxOutOfOrder}}, idle_after: {{.MaxOutOfOrder}}}
    file: {path: "{{.Dir}}/out/{stream}/{yyyy-MM-dd}.ndjson.zst", roll: {size: 64MiB, time: {{.Roll}}}}
{{- if .Changes}}
  - name: changes
    streams: [shop.changes]
    file: {path: "{{.Dir}}/changes/{partition}/changes.ndjson.zst", roll: {size: 64MiB, time: {{.Roll}}}}
{{- end}}
`))

// WritePipeline writes shop.yaml into o.Dir and returns its path and text.
func (s *Shop) WritePipeline(o PipelineOptions) (path, text string, err error) {
	if o.Journal == "" {
		o.Journal = "{dir: " + o.Dir + "/journal}"
	}
	if o.Partitions == "" {
		o.Partitions = "1"
	}
	search := ""
	if s.Search != nil {
		search = s.Search.URL()
	}
	var b strings.Builder
	err = pipelineFile.Execute(&b, map[string]any{
		"Dir": o.Dir, "Journal": o.Journal, "Partitions": o.Partitions, "MaxOutOfOrder": o.MaxOutOfOrder, "Roll": o.Roll, "Changes": o.Changes,
		"MySQL": s.MySQL.Addr, "Redis": s.Redis.Addr, "Search": search, "AccessLog": s.Nginx.AccessLog(), "Collect": s.Collect,
	})
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(o.Dir, "shop.yaml")
	return path, b.String(), os.WriteFile(path, []byte(b.String()), 0o600)
}
