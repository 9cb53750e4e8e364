package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `version: 1
pipeline: shop
journal: {dir: DIR/data}
sources:
  - name: app
    stream: app.events
    http: {listen: "127.0.0.1:0", path: /collect, time_field: ts, id_field: id}
sinks:
  - name: archive
    streams: [app.events]
    file: {path: "DIR/out/{stream}.ndjson"}
`

// write puts a pipeline file into a fresh folder and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	file := write(t, good)
	unknownKey := write(t, strings.Replace(good, "listen:", "listn:", 1))
	for name, c := range map[string]struct {
		args   []string
		code   int
		output string
	}{
		"help":                              {[]string{"--help"}, exitOK, "Exit codes"},
		"version":                           {[]string{"--version"}, exitOK, version},
		"a good file":                       {[]string{"validate", file}, exitOK, "shop.yaml: ok"},
		"an unknown key":                    {[]string{"validate", unknownKey}, exitConfig, `did you mean "listen"?`},
		"an unknown key, run":               {[]string{"run", unknownKey}, exitConfig, "shop.yaml:7:"},
		"a file that is not there":          {[]string{"validate", "none.yaml"}, exitConfig, "reading pipeline file: open none.yaml"},
		"a server's file that is not there": {[]string{"server", "--config", "none.yaml"}, exitConfig, "reading server file: open none.yaml"},
		"no such verb":                      {[]string{"rum"}, exitConfig, `unknown command "rum" for "daybook": did you mean run?`},
		"nothing like a verb":               {[]string{"bogus"}, exitConfig, "did you mean bench,"},
		"no verb":                           {[]string{}, exitOK, "Exit codes"},
		"no such verb of journals":          {[]string{"journal", "bogus"}, exitConfig, `unknown command "bogus" for "daybook journal": did you mean dump, ls, read, repair, verify?`},
		"nearly a verb of journals":         {[]string{"journal", "raed", "data"}, exitConfig, "did you mean read?"},
		"journals, no verb":                 {[]string{"journal"}, exitOK, "repair"},
		"get from afar":                     {[]string{"get", "s", "--key", "k", "--brokers", "127.0.0.1:1"}, exitConfig, "unknown flag: --brokers"},
		"status of brokers alone":           {[]string{"status", "--brokers", "127.0.0.1:1"}, exitConfig, "give --file as well"},
		"status of brokers and a worker":    {[]string{"status", "--brokers", "127.0.0.1:1", "--http", "127.0.0.1:1"}, exitConfig, "--http"},
		"status of a file at brokers that are not there": {[]string{"status", "-f", file, "--brokers", "127.0.0.1:1"}, exitEnvironment, "127.0.0.1:1"},
		"no such flag":                   {[]string{"run", file, "--onse"}, exitConfig, "unknown flag"},
		"no file":                        {[]string{"run"}, exitConfig, "an argument is missing: daybook run FILE... (see daybook run --help)"},
		"no journal to move":             {[]string{"cluster", "move", "--to", "1"}, exitConfig, "an argument is missing: daybook cluster move STREAM/JOURNAL --to NODE,... (see daybook cluster move --help)"},
		"an argument too many":           {[]string{"cluster", "add", "node"}, exitConfig, "too many arguments: daybook cluster add (see daybook cluster add --help)"},
		"an address without a port":      {[]string{"server", "--data", t.TempDir(), "--kafka", "127.0.0.1"}, exitConfig, `--kafka "127.0.0.1" is not host:port`},
		"a cluster's without a port":     {[]string{"server", "--data", t.TempDir(), "--cluster", "127.0.0.1"}, exitConfig, `--cluster "127.0.0.1" is not host:port`},
		"one to join without a port":     {[]string{"server", "--data", t.TempDir(), "--cluster", "127.0.0.1:0", "--join", "10.0.0.1"}, exitConfig, `--join "10.0.0.1" is not host:port`},
		"a server without a folder":      {[]string{"server"}, exitConfig, "--data DIR or --config FILE"},
		"a flag that is missing":         {[]string{"replay", file, "--sink", "archive"}, exitConfig, "required flag"},
		"no source or sink of a name":    {[]string{"run", file, "--only", "archiv"}, exitConfig, `archiv`},
		"a folder by its former name":    {[]string{"streams", "--dir", "data"}, exitConfig, "unknown flag"},
		"two places":                     {[]string{"streams", "--file", file, "--data", "data"}, exitConfig, "one of --file"},
		"a level that is none":           {[]string{"run", file, "--log-level", "loud"}, exitConfig, "loud"},
		"no journal there":               {[]string{"streams", "--data", filepath.Join(t.TempDir(), "none")}, exitEnvironment, "no journal"},
		"nobody at the broker's place":   {[]string{"streams", "--brokers", "127.0.0.1:1"}, exitEnvironment, "127.0.0.1:1"},
		"an address in use":              {[]string{"server", "--data", t.TempDir(), "--kafka", "203.0.113.1:1"}, exitEnvironment, "--kafka"},
		"a run that moves what is there": {[]string{"run", file, "--once"}, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := run(t.Context(), c.args, &out, &out)
			if code != c.code || !strings.Contains(out.String(), c.output) {
				t.Errorf("daybook %s: exit code %d, want %d with %q in:\n%s", strings.Join(c.args, " "), code, c.code, c.output, &out)
			}
		})
	}
}
