package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks"
	"github.com/daybook-data/daybook/sources"
)

func TestTheDocumentsInTheTreeAreFresh(t *testing.T) {
	t.Parallel()
	if err := run("../..", true); err != nil {
		t.Error(err)
	}
}

func TestAStaleDocumentIsFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"/docs", "/configs"} {
		if err := os.Mkdir(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(root, true); err == nil {
		t.Error("missing documents are not found")
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("got %v for documents just written", err)
	}
	if err := os.WriteFile(root+"/docs/config.md", []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "docs/config.md is stale: run make generate") {
		t.Errorf("got %v for an edited document", err)
	}
}

func TestTheReferenceLoadsAndHasEveryConnector(t *testing.T) {
	t.Parallel()
	f, err := pipeline.LoadFile("../../configs/reference.yaml", pipeline.Kinds{Sources: sources.All(), Sinks: sinks.All()})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, s := range f.Sources {
		got = append(got, s.Kind)
	}
	for _, s := range f.Sinks {
		got = append(got, s.Kind)
	}
	for _, s := range sources.All() {
		want = append(want, s.Kind)
	}
	for _, s := range sinks.All() {
		want = append(want, s.Kind)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the reference has %q, want %q", got, want)
	}
}

// What one copies must load as it stands, and say what can be said of users once the # is off.
func TestTheServersReferenceLoads(t *testing.T) {
	t.Setenv("NAME", "value of the secret")
	f, err := node.LoadServerFile("../../configs/server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Listeners) != 1 || len(f.Users) != 0 || f.Authorization != nil {
		t.Errorf("it has %d listeners and %d users, authorization %v; want 1, 0, none", len(f.Listeners), len(f.Users), f.Authorization)
	}
	text, err := os.ReadFile("../../configs/server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given := string(text)
	for _, key := range []string{"users:", "- name:", "password:"} {
		if strings.Count(given, "#"+key) != 1 {
			t.Fatalf("there is no one #%s in\n%s", key, given)
		}
		given = strings.Replace(given, "#"+key, key, 1)
	}
	given = strings.Replace(given, `- name: ""`, "- name: ann", 1)
	full := &node.ServerFile{}
	if err := configs.Decode("server.yaml", []byte(given), full); err != nil || len(full.Users) != 1 || full.Users[0].Name != "ann" {
		t.Errorf("with a user: %v, users %v", err, full.Users)
	}
}

// dependent are defaults that mean something only beside another field, with what the
// file then says.
var dependent = map[string][]string{
	"dedupe_window": {"needs `id_field`"},
	"time_unit":     {"needs `time_field`"},
	"time_zone":     {"needs `time_field`"},
	"ca":            {"has no effect with `mode: off`", "is for `brokers`"},
	"cert":          {"has no effect with `mode: off`", "is for `brokers`"},
	"key":           {"has no effect with `mode: off`", "is for `brokers`"},
	"server_name":   {"has no effect with `mode: off`", "is for `brokers`"},
	"password":      {"is of no use without `user`", "journal.sasl.user: is missing"},
	"user":          {"journal.sasl.password: is missing"},
	"mechanism":     {"journal.sasl.user: is missing"},
}

var commented = regexp.MustCompile(`^( *)#([a-z_]+):( .*)?$`)

// Whoever takes the # from a line gets what was in force before.
func TestEachDefaultOfTheReferenceMayBeGiven(t *testing.T) {
	t.Setenv("NAME", "value of the secret")
	text, err := os.ReadFile("../../configs/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	tried := 0
	for i, line := range lines {
		m := commented.FindStringSubmatch(line)
		if m == nil || m[3] == "" {
			continue
		}
		tried++
		given := slices.Clone(lines)
		given[i] = m[1] + m[2] + ":" + m[3]
		uncommentParents(given, i, len(m[1]))
		f := pipeline.NewFile(pipeline.Kinds{Sources: sources.All(), Sinks: sinks.All()})
		err := configs.Decode("reference.yaml", []byte(strings.Join(given, "\n")), f)
		says := func(words string) bool { return strings.Contains(err.Error(), words) }
		if err != nil && !slices.ContainsFunc(dependent[m[2]], says) {
			t.Errorf("line %d, %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
	if tried < 50 {
		t.Errorf("only %d lines were tried", tried)
	}
}

// uncommentParents opens the sections around line i, which is indented this far.
func uncommentParents(lines []string, i, indent int) {
	for ; i >= 0 && indent > 0; i-- {
		m := commented.FindStringSubmatch(lines[i])
		if m != nil && m[3] == "" && len(m[1]) < indent {
			lines[i] = m[1] + m[2] + ":"
			indent = len(m[1])
		}
		trimmed := strings.TrimLeft(lines[i], " ")
		if trimmed != "" && trimmed[0] != '#' && len(lines[i])-len(trimmed) < indent {
			return // inside what is open
		}
	}
}

func TestEveryFieldStandsInTheReferenceAndTheTables(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile("../../configs/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"max_out_of_order", "gc_deletes", "rotate_wait", "tombstone_ttl", "dedupe_window", "durability", "server_id"} {
		if !bytes.Contains(reference, []byte(key+":")) || !bytes.Contains(tables, []byte("`"+key+"`")) {
			t.Errorf("%s is missing in the reference or the tables", key)
		}
	}
}

func TestAReferenceWithoutAnExampleOrWithOneTooManyIsAnError(t *testing.T) {
	t.Parallel()
	without := examples()
	delete(without, "sources[].stream")
	without["sinks[].none"] = "1"
	without["sinks[].streams"] = "[]"
	err := configs.WriteReference(&bytes.Buffer{}, "", file(), without)
	for _, want := range []string{"sources[].stream is required and has no example", "sinks[].none is an example of no field", "sinks[].streams = [] is against its own rules"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}

func TestAWriterThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, d := range documents() {
		if err := d.write(failing{full}); !errors.Is(err, full) {
			t.Errorf("%s: got %v, want the writer's error", d.path, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
