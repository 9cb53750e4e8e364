package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/google/go-cmp/cmp"
)

func TestMissingFieldsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	s := mustDecode(t, "")
	if s.Text != "a" || s.Switch || s.Number != 7 || s.Duration != 90*time.Second || s.Size != 3<<20 || !s.Time.IsZero() ||
		len(s.Texts) != 1 || s.Secret.IsSet() || s.Sub.Count != 1 || s.Optional != nil || s.List != nil || s.Chosen != "one" {
		t.Errorf("got %+v", s)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "-3": -3, "1_000": 1000, "9223372036854775807": 1<<63 - 1} {
		if got := mustDecode(t, "number: "+text).Number; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"1.0", "0x10", "9223372036854775808", `"7"`, "", "[1]", "1e3"} {
		wantError(t, "number: "+text, "1:", "number: want a whole number")
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "false": false, "True": true} {
		if got := mustDecode(t, "switch: "+text).Switch; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"yes", "1", `"true"`, "", "{}"} {
		wantError(t, "switch: "+text, "switch: want true or false")
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "7d": 168 * time.Hour, "0s": 0, `"5s"`: 5 * time.Second,
		"1.5h": 90 * time.Minute, "106751d": 106751 * 24 * time.Hour,
	} {
		if got := mustDecode(t, "duration: "+text).Duration; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"5", "0", "five", "-1s", "-1d", "1.5d", "106752d", "9999999h", "", "5 s", "[5s]"} {
		wantError(t, "duration: "+text, "duration: ")
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"512B": 512, "64KiB": 64 << 10, "16MiB": 16 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "1 MiB": 1 << 20,
		"64kB": 64e3, "64KB": 64e3, "16MB": 16e6, "2GB": 2e9, "1TB": 1e12, "0B": 0, "8388607TiB": 8388607 << 40,
	} {
		if got := mustDecode(t, "size: "+text).Size; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"1024", "1.5MiB", "-1B", "MiB", "8388608TiB", "1mib", "", "{}"} {
		wantError(t, "size: "+text, "size: ")
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 9, 1, 0, 0, 0, 500_000_000, time.UTC)
	for _, text := range []string{"2026-09-01T00:00:00.5Z", `"2026-09-01T02:00:00.5+02:00"`} {
		if got := mustDecode(t, "time: "+text).Time; !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"2026-09-01", "2026-09-01T00:00:00", "now", "1790856000", ""} {
		wantError(t, "time: "+text, "time: want a time")
	}
}

func TestTextsAndLists(t *testing.T) {
	t.Parallel()
	s := mustDecode(t, "text: |\n  two\n  lines\ntexts:\n  - \"a: b\"\n  - c\nlist:\n  - {name: x}\n  - {}\n")
	if s.Text != "two\nlines\n" || !cmp.Equal(s.Texts, []string{"a: b", "c"}) {
		t.Errorf("got %q and %q", s.Text, s.Texts)
	}
	if !cmp.Equal(s.List, []below{{Name: "x", Count: 1}, {Count: 1}}) {
		t.Errorf("got %v", s.List)
	}
	wantError(t, "texts:\n  - a\n  - 7\n", "f.yaml:3:5: texts: want text, got 7")
	wantError(t, "text: 2026-01-01", "put it in quotes")
	wantError(t, "text: !custom x", "text: want text")
}

func TestAnchorsAndMerges(t *testing.T) {
	t.Parallel()
	s := mustDecode(t, "sub: &a {name: n, count: 3}\noptional: {<<: *a, count: 4}\nlist: [*a, {<<: [*a]}, {<<: [{name: first}, *a]}]\n")
	if s.Optional.Name != "n" || s.Optional.Count != 4 {
		t.Errorf("got %+v, want the anchor's name and its own count", s.Optional)
	}
	if !cmp.Equal(s.List, []below{{"n", 3}, {"n", 3}, {"first", 3}}) {
		t.Errorf("got %+v", s.List)
	}
	nested := mustDecode(t, "sub: &a {name: n}\noptional: &b {<<: *a, count: 5}\nlist: [{<<: *b}]\n")
	if !cmp.Equal(nested.List, []below{{"n", 5}}) {
		t.Errorf("got %+v for a merge in a merge", nested.List)
	}
	wantError(t, "sub: &a {nmae: n}\noptional: {<<: *a}\n", "1:10: sub.nmae", "1:10: optional.nmae", `did you mean "name"`)
}

func TestAllProblemsAreToldInTheOrderOfTheLines(t *testing.T) {
	t.Parallel()
	_, err := decode(t, "size: 1\nnumber: x\nsub: {count: y}\ntxet: 1")
	var lines []string
	for _, l := range strings.Split(err.Error(), "\n") {
		lines = append(lines, strings.Join(strings.SplitN(l, ":", 5)[:4], ":"))
	}
	if diff := cmp.Diff([]string{"f.yaml:1:7: size", "f.yaml:2:9: number", "f.yaml:3:14: sub.count", "f.yaml:4:1: txet"}, lines); diff != "" {
		t.Errorf("places differ (-want +got):\n%s", diff)
	}
}

func TestAChecksProblemsStandAtTheirKeys(t *testing.T) {
	t.Parallel()
	var seen []string
	s := &sample{checked: &seen}
	err := configs.Decode("f.yaml", []byte("number: 1\nlist:\n  - {}\n  - {count: 1, name: x}\nsub: {}\none: {}\n"), s)
	want := "f.yaml:1:1: said of a missing item\nf.yaml:1:9: number: said of the number\nf.yaml:4:22: list[1].name: said of an item"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if diff := cmp.Diff([]string{"number", "sub"}, seen); diff != "" {
		t.Errorf("Has differs (-want +got):\n%s", diff)
	}
}

func TestAFileIsDecodedWholeOrNotLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(path, []byte("\xef\xbb\xbftext: b\r\none: {}\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var s sample
	if err := configs.Load(path, &s); err != nil || s.Text != "b" {
		t.Errorf("got %q and %v for a file with a byte order mark and CRLF", s.Text, err)
	}
	for _, bad := range []string{filepath.Join(dir, "none.yaml"), dir} {
		if err := configs.Load(bad, &s); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("got %v, want an error that names %s", err, bad)
		}
	}
	if err := os.Truncate(path, 9<<20); err != nil {
		t.Fatal(err)
	}
	if err := configs.Load(path, &s); err == nil || !strings.Contains(err.Error(), "is larger than 8MiB") {
		t.Errorf("got %v for a file of 9 MiB", err)
	}
}

func TestSuggestionsAreNear(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"nubmer": `"number"`, "Text": `"text"`, "dration": `"duration"`, "lsit": `"list"`, "zzz": ""} {
		_, err := decode(t, key+": 1")
		if got := strings.Contains(err.Error(), "did you mean"); got != (want != "") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want the suggestion %s", key, err, want)
		}
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add("text: a\none: {}\n")
	f.Add("sub: &a {<<: *a}\nlist: [*a]\n")
	f.Add("? [a]\n: {b: !!binary x}\n")
	f.Add("secret: {env: HOME}\ntwo:\n")
	f.Fuzz(func(t *testing.T, text string) {
		var s sample
		if err := configs.Decode("f.yaml", []byte(text), &s); err != nil {
			for _, p := range err.(configs.Problems) {
				if p.Line < 1 || p.Column < 1 {
					t.Errorf("%q: %v has no place", text, p)
				}
			}
		}
	})
}
