package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks"
	"github.com/daybook-data/daybook/sources"
)

var update = flag.Bool("update", false, "write the errors that are found into the fixtures, to be reviewed as code")

const wanted = "# want: "

// Each fixture begins with the errors that it must give, a line each; the lines that
// errors speak of are counted behind them.
func TestBadFilesSayWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../configs/testdata/*.bad.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixture: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, body := splitFixture(text)
			got := problems(t, body)
			if *update {
				writeFixture(t, path, got, body)
				return
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
			if bytes.Contains(text, []byte("hunter2")) && strings.Contains(strings.Join(got, ""), "hunter2") {
				t.Error("an error shows the password")
			}
		})
	}
}

// splitFixture parts the expected errors from the file itself.
func splitFixture(text []byte) (want []string, body []byte) {
	for {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !found || !bytes.HasPrefix(line, []byte(wanted)) {
			return want, text
		}
		want, text = append(want, string(line[len(wanted):])), rest
	}
}

// problems decodes the file and returns its errors without the file's name.
func problems(t *testing.T, body []byte) []string {
	t.Helper()
	f := pipeline.NewFile(pipeline.Kinds{Sources: sources.All(), Sinks: sinks.All()})
	err := configs.Decode("file", body, f)
	var ps configs.Problems
	if !errors.As(err, &ps) || len(ps) == 0 {
		t.Fatalf("got %v, want configs.Problems", err)
	}
	var lines []string
	for _, p := range ps {
		if p.Line < 1 || p.Column < 1 || strings.Contains(p.Message, "\n") {
			t.Errorf("%q has no place, or takes several lines", p.Error())
		}
		lines = append(lines, strings.TrimPrefix(p.Error(), "file:"))
	}
	return lines
}

func writeFixture(t *testing.T, path string, got []string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	for _, g := range got {
		b.WriteString(wanted + g + "\n")
	}
	b.Write(body)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
