package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/node"
)

// A stream has the partitions and journals that it was created with, beside a server and without one.
func TestAStreamIsCreatedAsAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	daybook(t, exitOK, "streams", "create", "alone", "--data", dir, "--partitions", "4", "--journals", "2", "--set", "retention.ms=1000")
	addr, stop := serve(t, dir)
	daybook(t, exitOK, "streams", "create", "served", "--brokers", addr, "--partitions", "3", "--journals", "3")
	var list []node.StreamInfo
	if err := json.Unmarshal([]byte(daybook(t, exitOK, "streams", "--brokers", addr, "--json")), &list); err != nil {
		t.Fatal(err)
	}
	stop()
	want := map[string]struct{ partitions, journals int }{"alone": {4, 2}, "served": {3, 3}}
	if len(list) != len(want) {
		t.Errorf("there are %d streams, want %d", len(list), len(want))
	}
	for _, s := range list {
		journals, err := filepath.Glob(filepath.Join(dir, "streams", "*", "*"))
		if err != nil || len(journals) != 5 {
			t.Errorf("the streams have the journals %v, %v; want 5", journals, err)
		}
		if got := len(s.Partitions); got != want[s.Name].partitions {
			t.Errorf("%s has %d partitions, want %d", s.Name, got, want[s.Name].partitions)
		}
	}
}

func TestAStreamThatCannotBeCreatedSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	daybook(t, exitOK, "streams", "create", "there", "--data", dir)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"one of the name is there": {[]string{"there"}, exitFailed, "stream already exists"},
		"more copies than nodes":   {[]string{"s", "--copies", "3"}, exitFailed, "copies asked for: 3, nodes: 1"},
		"an unknown setting":       {[]string{"s", "--set", "retension.ms=1"}, exitFailed, `no setting "retension.ms"`},
		"a setting without value":  {[]string{"s", "--set", "retention.ms"}, exitConfig, "not NAME=VALUE"},
		"a journal for nothing":    {[]string{"s", "--journals", "2"}, exitConfig, "--partitions 1"},
		"no name":                  {nil, exitConfig, "daybook streams create STREAM"},
	} {
		out := daybook(t, c.code, append(append([]string{"streams", "create"}, c.args...), "--data", dir)...)
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: the answer has no %q:\n%s", name, c.want, out)
		}
	}
	if made, err := os.ReadDir(filepath.Join(dir, "streams")); err != nil || len(made) != 1 {
		t.Errorf("there are %d streams, %v; want 1", len(made), err)
	}
}

func TestASourceSharesItsStreamOut(t *testing.T) {
	t.Parallel()
	shared := func(partitions, journals int) string {
		return strings.Replace(good, "stream: app.events\n    http", fmt.Sprintf("stream: app.events\n    partitions: %d\n    journals: %d\n    http", partitions, journals), 1)
	}
	file := write(t, shared(4, 2))
	daybook(t, exitOK, "run", file, "--once")
	if made, err := filepath.Glob(filepath.Join(filepath.Dir(file), "data", "streams", "*", "1")); err != nil || len(made) != 1 {
		t.Errorf("streams with a second journal: %v, %v; want one", made, err)
	}
	if out := daybook(t, exitConfig, "validate", write(t, shared(1, 2))); !strings.Contains(out, "2 journals for a stream of `partitions: 1`") {
		t.Errorf("a journal without a partition: %s", out)
	}
}
