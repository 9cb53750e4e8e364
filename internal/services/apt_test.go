package services

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDebianMirrorIsTheMachinesOwn(t *testing.T) {
	const want = "http://mirror.example/debian"
	for name, files := range map[string]map[string]string{
		"deb822": {"sources.list.d/debian.sources": "# a comment\nTypes: deb\n" +
			"URIs: http://mirror.example/debian-security\nSuites: a\n\nTypes: deb\nURIs: http://mirror.example/debian/\n"},
		"one line": {"sources.list": "# deb http://old.example/debian stable main\n" +
			"deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian stable main\n"},
		"among others": {"sources.list": "", "sources.list.d/a.list": "deb https://vendor.example/apt x main\n",
			"sources.list.d/b.list": "deb http://mirror.example/debian/ stable main\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := debianMirror(etc(t, files))
			if err != nil || got != want {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
	var missing *Unavailable
	_, err := debianMirror(etc(t, map[string]string{"sources.list": "deb http://mirror.example/ubuntu noble main\n"}))
	if !errors.As(err, &missing) {
		t.Errorf("without a Debian archive: %v, want *Unavailable", err)
	}
}

func etc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAptKeepsHowTheMachineFetchesAndNothingElse(t *testing.T) {
	got := aptConfig("/state", "Acquire::http::Proxy \"http://proxy.example:3128\";\nAcquire::Languages:: \"de\";\n")
	if !strings.Contains(got, `Acquire::http::Proxy "http://proxy.example:3128";`) {
		t.Errorf("the proxy is lost:\n%s", got)
	}
	for _, want := range []string{`Dir::Etc::parts "/state/empty";`, `Dir::State::status "/state/state/status";`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing:\n%s", want, got)
		}
	}
	if strings.Contains(got, `"de"`) {
		t.Errorf("translations are fetched:\n%s", got)
	}
}
