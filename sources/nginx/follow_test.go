package nginx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/nginx"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// reader runs sources over one folder, each from where the one before ended.
type reader struct {
	t       *testing.T
	dir     string
	options string
	journal *sourcetest.Journal

	source *nginx.Source
	cancel context.CancelFunc
	ended  chan error
}

// newReader reads access.log in a new folder; a line is `"TEXT" STATUS`.
func newReader(t *testing.T, options string) *reader {
	t.Helper()
	return &reader{t: t, dir: t.TempDir(), options: options, journal: sourcetest.NewJournal()}
}

func (r *reader) path(name string) string { return filepath.Join(r.dir, name) }

func (r *reader) section() string {
	paths := "paths: ['" + r.path("access.log") + "'], "
	if strings.Contains(r.options, "paths:") {
		paths = ""
	}
	return "{" + paths + `format: '"$http_a" $status', rotate_wait: 30ms` + strings.ReplaceAll(r.options, "DIR", r.dir) + "}"
}

func (r *reader) start() {
	r.t.Helper()
	r.source = open(r.t, r.section(), false)
	from, emitter := r.journal.Start(nil, r.source)
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	r.cancel, r.ended = cancel, ended
	source := r.source
	go func() { ended <- source.Run(ctx, from, emitter) }()
	r.t.Cleanup(cancel)
}

// stop ends the run as kill -9 would: nothing is said to the source beforehand.
func (r *reader) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.ended; !errors.Is(err, context.Canceled) {
		r.t.Errorf("Run returned %v", err)
	}
}

// once reads what is there.
func (r *reader) once() error {
	r.t.Helper()
	r.source = open(r.t, r.section(), true)
	from, emitter := r.journal.Start(nil, r.source)
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	return r.source.Run(ctx, from, emitter)
}

func (r *reader) mustOnce() {
	r.t.Helper()
	if err := r.once(); err != nil {
		r.t.Errorf("Run returned %v with Once", err)
	}
}

func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) add(name, text string) {
	r.t.Helper()
	f, err := os.OpenFile(r.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) rename(from, to string) {
	r.t.Helper()
	if err := os.Rename(r.path(from), r.path(to)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) remove(name string) {
	r.t.Helper()
	if err := os.Remove(r.path(name)); err != nil {
		r.t.Fatal(err)
	}
}

// texts returns the records' texts, or their values where they were not parsed.
func (r *reader) texts() []string {
	var texts []string
	for _, record := range r.journal.Records() {
		var v struct {
			Text     string `json:"http_a"`
			Unparsed string
		}
		if err := json.Unmarshal(record.Value, &v); err != nil {
			r.t.Fatalf("%s is not JSON: %v", record.Value, err)
		}
		if v.Unparsed != "" {
			v.Text = string(record.Value)
		}
		texts = append(texts, v.Text)
	}
	return texts
}

// want waits until the journal has exactly these texts.
func (r *reader) want(texts ...string) {
	r.t.Helper()
	r.until(func() bool { return len(r.texts()) >= len(texts) }, func() string { return fmt.Sprintf("%q", r.texts()) })
	if got := r.texts(); strings.Join(got, "|") != strings.Join(texts, "|") {
		r.t.Fatalf("got %q, want %q", got, texts)
	}
}

func (r *reader) until(reached func() bool, state func() string) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !reached() {
		select {
		case err := <-r.ended:
			r.t.Fatalf("Run returned %v", err)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not reached within a minute: %s", state())
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *reader) counter(name string) int64 { return r.source.Report().Counters[name] }

func (r *reader) untilCounter(name string, at int64) {
	r.t.Helper()
	r.until(func() bool { return r.counter(name) >= at }, func() string { return fmt.Sprint(r.source.Report()) })
}

func line(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		fmt.Fprintf(&b, "%q 200\n", t)
	}
	return b.String()
}

func TestALineIsEmittedWhenItsEndIsThere(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", `"a" 20`)
	r.start()
	r.untilCounter("files_followed", 1)
	r.add("access.log", "0\n\"b\"")
	r.want("a")
	r.add("access.log", " 200\n")
	r.want("a", "b")
}

func TestTheLastLineOfARotatedFileNeedsNoLineBreak(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", line("a")+`"b" 200`)
	r.start()
	r.want("a")
	r.rename("access.log", "access.log.1")
	r.write("access.log", line("c"))
	r.untilCounter("files_finished", 1)
	r.until(func() bool { return len(r.texts()) == 3 }, func() string { return fmt.Sprint(r.texts()) })
	// Its line break comes after all, and a line more.
	r.add("access.log.1", "\n"+line("d"))
	r.until(func() bool { return len(r.texts()) == 4 }, func() string { return fmt.Sprint(r.texts()) })
	got := r.texts()
	slices.Sort(got)
	if strings.Join(got, "") != "abcd" {
		t.Errorf("got %q, want a to d", got)
	}
}

// The kernel gives the live file the inode of one that was read before.
func TestAFileWithTheInodeOfAnOldOneIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		r := newReader(t, "")
		r.write("access.log", line("a", "b", "c"))
		r.start()
		r.want("a", "b", "c")
		if restart {
			r.stop()
		}
		// A hard link keeps the inode; its contents are replaced, as by a file that got it.
		r.write("access.log", line("x", "y", "z", "longer than before"))
		if restart {
			r.start()
		}
		r.want("a", "b", "c", "x", "y", "z", "longer than before")
		r.stop()
	}
}

// Equal first lines, in formats without a time, are no sign that two files are one.
func TestFilesThatBeginAlikeAreNotConfused(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/*.log']")
	r.write("a.log", line("same", "same", "a"))
	r.write("b.log", line("same", "same", "b"))
	r.start()
	r.want("same", "same", "a", "same", "same", "b")
	for range 3 { // truncated to the same beginning: each time a generation of its own
		before := len(r.journal.Records())
		r.untilCounter("files_followed", 2)
		r.write("a.log", "")
		r.until(func() bool { return r.counter("truncations") > 0 }, func() string { return "no truncation seen" })
		r.add("a.log", line("same"))
		r.until(func() bool { return len(r.journal.Records()) == before+1 }, func() string { return fmt.Sprint(r.texts()) })
		r.stop()
		r.start()
	}
	seen := map[string]bool{}
	for _, record := range r.journal.Records() {
		if seen[record.Position] {
			t.Errorf("the position %q was given twice", record.Position)
		}
		seen[record.Position] = true
	}
}

// What stands in a file that is rotated and deleted is read to its end.
func TestABurstIsReadThoughItsFileIsDeleted(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", line("first"))
	r.start()
	r.want("first")
	const lines = 100_000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "\"%d\" 200\n", i)
	}
	r.add("access.log", b.String())
	r.rename("access.log", "access.log.1")
	r.write("access.log", line("last"))
	r.remove("access.log.1")
	r.untilCounter("lines", lines+2)
	r.stop()
	got := r.texts()
	if len(got) != lines+2 || got[1] != "0" || got[lines] != fmt.Sprint(lines-1) || got[lines+1] != "last" {
		t.Errorf("got %d records, the first %q, the last %q", len(got), got[1], got[len(got)-1])
	}
}

func TestAfterDowntimeReadingGoesOnInTheRotatedFiles(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, "")
			r.write("access.log.2", line("old and not asked for"))
			old := time.Now().Add(-24 * time.Hour)
			if err := os.Chtimes(r.path("access.log.2"), old, old); err != nil {
				t.Fatal(err)
			}
			r.write("access.log", line("a"))
			r.start()
			r.want("a")
			r.stop()
			r.add("access.log", line("b"))
			r.rename("access.log.2", "access.log.4")
			r.rename("access.log", "access.log.3")
			r.write("access.log.2", line("c"))
			r.write("access.log.1", line("d"))
			r.write("access.log", line("e"))
			if packed {
				for _, n := range []string{"3", "2"} {
					text, err := os.ReadFile(r.path("access.log." + n))
					if err != nil {
						t.Fatal(err)
					}
					if err := writeGzip(r.path("access.log."+n+".gz"), string(text)); err != nil {
						t.Fatal(err)
					}
					r.remove("access.log." + n)
				}
			}
			r.start()
			r.want("a", "b", "c", "d", "e")
			r.stop()
		})
	}
}

func TestWhatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", line("a", "b"))
	r.start()
	r.want("a", "b")
	r.stop()
	r.remove("access.log")
	r.write("access.log", line("c"))
	r.start()
	r.want("a", "b", "c")
	if n := r.counter("files_vanished"); n != 1 {
		t.Errorf("counted %d vanished files, want 1", n)
	}
	r.stop()
}

func TestLongLinesAreKeptInPieces(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", max_line: 1KiB")
	long := strings.Repeat("x", 1024)
	r.write("access.log", long+long+"end\n"+strings.Repeat("\x00", 1500)+"\n"+line("after"))
	r.mustOnce()
	r.want(
		`{"piece":1,"last":false,"line":"`+long+`","unparsed":"is a piece of a line longer than max_line"}`,
		`{"piece":2,"last":false,"line":"`+long+`","unparsed":"is a piece of a line longer than max_line"}`,
		`{"piece":3,"last":true,"line":"end","unparsed":"is a piece of a line longer than max_line"}`,
		`{"piece":1,"last":false,"nul_bytes":1024,"line":"","unparsed":"is a piece of a line longer than max_line"}`,
		`{"piece":2,"last":true,"nul_bytes":476,"line":"","unparsed":"is a piece of a line longer than max_line"}`,
		"after")
	if n := r.counter("long_line_pieces"); n != 5 {
		t.Errorf("counted %d pieces, want 5", n)
	}
}

func TestALineLongerThanTheFirstBufferIsOneRecord(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	long := strings.Repeat("y", 700<<10)
	r.write("access.log", line(long, "after"))
	r.mustOnce()
	r.want(long, "after")
}

func TestOnceTakesABegunLineAndTheNextRunDoesNotRepeatIt(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", line("a")+`"b" 200`)
	r.mustOnce()
	r.want("a", "b")
	r.mustOnce()
	r.add("access.log", "\n"+line("c"))
	r.mustOnce()
	r.want("a", "b", "c")
}

func TestOnceReadsHistoryOldestFirst(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/access.log*']")
	if err := writeGzip(r.path("access.log.10.gz"), line("a")); err != nil {
		t.Fatal(err)
	}
	if err := writeGzip(r.path("access.log.9.gz"), line("b")); err != nil {
		t.Fatal(err)
	}
	r.write("access.log.1", line("c"))
	r.write("access.log", line("d"))
	r.write("access.log-20261128", "") // of another scheme, and empty
	r.mustOnce()
	r.want("a", "b", "c", "d")
	r.mustOnce()
	r.want("a", "b", "c", "d")
}

func TestStartAtTheEndSkipsWhatIsThereOnce(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", start: end")
	r.write("access.log", line("old", "older")+`"half`)
	r.start()
	r.untilCounter("files_followed", 1)
	r.add("access.log", `" 200`+"\n"+line("new"))
	r.want("half", "new")
	r.stop()
	r.add("access.log", line("while away"))
	r.start()
	r.want("half", "new", "while away")
	r.stop()
}

func TestAnEmptyFolderIsSaidAndFilesAreReadWhenTheyCome(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/access.log', 'DIR/none/*.log']")
	r.start()
	r.untilCounter("silent_paths", 2)
	if d := r.source.Report().Detail; !strings.Contains(d, "no file matches") || !strings.Contains(d, "none/*.log") {
		t.Errorf("Report says %q, want the paths without a file", d)
	}
	if p := r.source.Report().Phase; p != "waiting" {
		t.Errorf("the phase is %q, want waiting", p)
	}
	r.write("access.log", line("a"))
	r.want("a")
	r.stop()
}

func TestADamagedCompressedFileIsReadAsFarAsItGoesAndSaid(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/*']")
	whole := r.path("whole")
	if err := writeGzip(whole, strings.Repeat(line("a"), 100_000)); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	r.remove("whole")
	r.write("access.log.1.gz", string(packed[:len(packed)-6]))
	r.write("access.log", line("b"))
	err = r.once()
	if err == nil || !strings.Contains(err.Error(), "access.log.1.gz") {
		t.Errorf("Run returned %v, want an error that names the file", err)
	}
	got := r.texts()
	if len(got) != 100_001 || got[len(got)-1] != "b" {
		t.Errorf("got %d lines, want all that can be read and those of the other file", len(got))
	}
}

func TestAPositionThatCantBeReadStops(t *testing.T) {
	t.Parallel()
	for _, p := range []pipeline.Position{"{", "{}", `{"v":2}`, "http:1", `{"v":1,"logs":[{"path":"/x","files":[{"off":-1}]}]}`, "\x00"} {
		s := open(t, "{paths: [/nowhere/access.log]}", true)
		_, emitter := sourcetest.NewJournal().Start(nil, s)
		err := s.Run(t.Context(), p, emitter)
		var stop *pipeline.StopError
		if !errors.As(err, &stop) || stop.Fix == "" {
			t.Errorf("%q: Run returned %v, want a *pipeline.StopError with a fix", p, err)
		}
	}
}

func TestALogThatLeavesThePathsKeepsItsPlace(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/a.log', 'DIR/b.log']")
	r.write("a.log", line("a"))
	r.write("b.log", line("b"))
	r.mustOnce()
	both := r.options
	r.options = ", paths: ['DIR/b.log']"
	r.add("b.log", line("c"))
	r.mustOnce()
	r.options = both
	r.add("a.log", line("d"))
	r.mustOnce()
	r.want("a", "b", "c", "d")
}

// Containers link the access log to /dev/stdout; nothing can be read there.
func TestALogThatIsADeviceIsSaid(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	if err := os.Symlink(os.DevNull, r.path("access.log")); err != nil {
		t.Fatal(err)
	}
	if err := r.once(); err == nil || !strings.Contains(err.Error(), "access.log is no regular file") {
		t.Errorf("Run returned %v, want an error that says what the path is", err)
	}
	r.start()
	r.untilCounter("files_unreadable", 1)
	if d := r.source.Report().Detail; !strings.Contains(d, "no regular file") {
		t.Errorf("Report says %q", d)
	}
	r.remove("access.log")
	r.write("access.log", line("a"))
	r.want("a")
	r.stop()
}

func TestAFileWithTwoNamesIsReadOnce(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/*.log']")
	r.write("a.log", line("a"))
	if err := os.Symlink(r.path("a.log"), r.path("b.log")); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.want("a")
	r.add("b.log", line("b"))
	r.want("a", "b")
	r.stop()
}
