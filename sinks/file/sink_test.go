package file_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/file"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestFilesAreNumberedByFlush(t *testing.T) {
	mem := vfs.NewMem()
	c := config(mem, "/out/{stream}/{yyyy/MM/dd}/{HH}.ndjson")
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0), numbered(1))
	sinktest.Flush(t, s, 2)
	sinktest.Flush(t, s, 3) // nothing written: no number used
	sinktest.Write(t, s, numbered(3))
	sinktest.Flush(t, s, 4)
	want := map[string]string{
		"shop.changes/2026/09/21/14-000001.ndjson": "{\"n\":0}\n{\"n\":1}\n",
		"shop.changes/2026/09/21/14-000002.ndjson": "{\"n\":3}\n",
	}
	if diff := cmp.Diff(want, tree(t, mem, "/out")); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}

// Whoever looks for records in files that are not complete is told where they are.
func TestTheReportSaysWhenFilesBecomeVisible(t *testing.T) {
	c := config(vfs.NewMem(), "/out/{kind}.ndjson")
	c.Roll = file.RollConfig{Size: 300, Time: time.Minute}
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	sinktest.Write(t, s, event(0, `{"kind":"a"}`), event(1, `{"kind":"b"}`), event(2, `{"kind":"b"}`))
	end := time.UnixMicro(sinktest.Stamp).UTC().Truncate(time.Minute).Add(time.Minute).Format(time.RFC3339)
	if got := s.Report().Detail; !strings.Contains(got, "not visible yet: 3 in 2") || !strings.Contains(got, end) {
		t.Errorf("the report says %q, want 3 records in 2 files until %s", got, end)
	}
	sinktest.Flush(t, s, 3)
	if got := s.Report().Detail; got != "" {
		t.Errorf("with all files visible it says %q", got)
	}
}

func TestFilesEndBySizeAndByStamp(t *testing.T) {
	c := config(vfs.NewMem(), "/out/{kind}.ndjson")
	c.Roll = file.RollConfig{Size: 300, Time: time.Minute}
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	at := func(second int64) int64 { return sinktest.Stamp + second*1_000_000 } // Stamp is 20 s after a minute
	write := func(n int64, kind string) {
		sinktest.Write(t, s, event(n, fmt.Sprintf(`{"kind":%q,"pad":%q}`, kind, strings.Repeat("x", 100))))
	}
	due := func(second int64, want bool) {
		t.Helper()
		if got := s.Due(at(second)); got != want {
			t.Errorf("due at second %d: %v, want %v", second, got, want)
		}
	}
	due(0, false)
	write(0, "a")
	write(1, "b")
	write(2, "b")
	due(2, false)
	write(3, "b")
	due(3, true) // b has more than 300 bytes
	sinktest.Flush(t, s, 4)
	due(3, false)
	write(4, "a")
	second := int64(60 - (sinktest.Stamp/1_000_000)%60)
	due(second-1, false)
	due(second, true) // a minute begins
	sinktest.Flush(t, s, 5)
	due(second, false)
	due(second+59, false)
	due(second+60, true) // nothing written: the cursor moves

	// The period goes on across a restart.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, _ = resume(t, c, sinktest.NewEnv(t))
	due(second+59, false)
	due(second+60, true)
}

func TestValuesCannotLeaveTheRoot(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "out")
	c := config(vfs.OS{}, root+"/{a}/x-{b}/{c}.ndjson")
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	nasty := []string{
		"..", ".", "", "/", "../../etc/passwd", "/etc/passwd", "a/../../b", "\x00", "a\x00b", "\\..\\..", ".hidden", ".daybook-shop-sink",
		strings.Repeat("long", 500), strings.Repeat("ü", 300), "new\nline", "%2e%2e", "%", "a%", "con", "x", "*?\"<>|", "\u202e", "..\u2215x", " ", "~",
	}
	n := int64(0)
	for i, a := range nasty {
		for _, b := range []string{a, nasty[(i+7)%len(nasty)], "same"} {
			value, err := json.Marshal(map[string]string{"a": a, "b": b, "c": a})
			if err != nil {
				t.Fatal(err)
			}
			sinktest.Write(t, s, event(n, string(value)))
			n++
		}
	}
	sinktest.Flush(t, s, n)
	files := rawTree(t, vfs.OS{}, root)
	if len(files) != int(n) {
		t.Errorf("%d files for %d different values: values share files, or files are hidden or elsewhere", len(files), n)
	}
	outside, err := os.ReadDir(dir)
	if err != nil || len(outside) != 1 {
		t.Errorf("beside the root lies %v, %v", outside, err)
	}
	hidden, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range hidden {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != ".daybook-shop-sink" {
			t.Errorf("a hidden name: %q", e.Name())
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/b", "%", "\x00", "\xff", strings.Repeat("%", 300)} {
		f.Add(s, s+"x")
	}
	long := strings.Repeat("long", 100)
	f.Add(long, file.Escape(long))
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := file.Escape(a), file.Escape(b)
		if x == "" || len(x) > 200 || strings.ContainsAny(x, "/\\\x00\n") || x[0] == '.' || !utf8.ValidString(x) {
			t.Fatalf("%q becomes %q", a, x)
		}
		if a != b && x == y {
			t.Fatalf("%q and %q both become %q", a, b, x)
		}
	})
}

func TestARecordIsOneLineAndNothingIsLost(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":1}`: `{"a":1}`,
		"{\n \"a\" : 1.50,\r\n \"b\":\"x\\ny\"}\n": `{"a":1.50,"b":"x\ny"}`,
		`18446744073709551615`:                     `18446744073709551615`,
		`"text"`:                                   `"text"`,
		"plain text":                               `{"daybook.text":"plain text"}`,
		"two\nlines":                               `{"daybook.text":"two\nlines"}`,
		"":                                         `{"daybook.text":""}`,
		"\xff\x00":                                 `{"daybook.base64":"/wA="}`,
		`{"a":}`:                                   `{"daybook.text":"{\"a\":}"}`,
	} {
		mem := vfs.NewMem()
		s, _, _ := resume(t, config(mem, "/out/x.ndjson"), sinktest.NewEnv(t))
		sinktest.Write(t, s, event(0, value))
		sinktest.Flush(t, s, 1)
		if got := lines(t, mem, "/out"); len(got) != 1 || got[0] != want {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
	mem := vfs.NewMem()
	s, _, _ := resume(t, config(mem, "/out/x.ndjson"), sinktest.NewEnv(t))
	d, err := pipeline.NewDelivery(pipeline.Record{Stream: sinktest.Stream, Key: []byte(`{"id":7}`), Stamp: sinktest.Stamp}, 0)
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, d)
	sinktest.Flush(t, s, 1)
	if got, want := lines(t, mem, "/out")[0], `{"daybook.tombstone":true,"key":{"id":7}}`; got != want {
		t.Errorf("a tombstone became %s, want %s", got, want)
	}
}

func TestAChangeIsWrittenAsWhatWhereMadeOfIt(t *testing.T) {
	where, err := pipeline.CompileWhere(`status == "open"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ value, want string }{
		{`{"before":{"status":"open"},"after":{"status":"open","n":1},"op":"u","ts_ms":5}`, `{"before":{"status":"open"},"after":{"status":"open","n":1},"op":"u","ts_ms":5}`},
		{`{"before":{"status":"open"},"after":{"status":"shut"},"op":"u","ts_ms":5}`, `{"after":null,"before":{"status":"open"},"op":"d","ts_ms":5}`},
		{`{"before":{"status":"shut"},"after":{"status":"open"},"op":"u","ts_ms":5}`, `{"after":{"status":"open"},"before":null,"op":"c","ts_ms":5}`},
	} {
		d, err := pipeline.NewDelivery(pipeline.Record{Stream: sinktest.Stream, Table: sinktest.Table, Value: []byte(c.value), Source: "db", Stamp: sinktest.Stamp}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if keep, err := where.Apply(&d); !keep || err != nil {
			t.Fatal(keep, err)
		}
		mem := vfs.NewMem()
		s, _, _ := resume(t, config(mem, "/out/{table}.ndjson"), sinktest.NewEnv(t))
		sinktest.Write(t, s, d)
		sinktest.Flush(t, s, 1)
		got := lines(t, mem, "/out")[0]
		if c.want != got && !(d.Op == pipeline.OpCreate && strings.Contains(got, `"op":"c"`) && strings.Contains(got, `"after":{"status":"open"}`)) {
			t.Errorf("%s became %s, want %s", c.value, got, c.want)
		}
	}
}

func TestRecordsWithoutAPlaceAreNamedBeforeTheCursorPassesThem(t *testing.T) {
	mem := vfs.NewMem()
	c := config(mem, "/out/{kind}.ndjson")
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	sinktest.Write(t, s, event(0, `{"kind":"a"}`), event(1, `{"n":1}`), event(2, `no object`), event(3, `{"kind":"b"}`))
	sinktest.WantRejected(t, s, 4, 1, 2)
	if files := tree(t, mem, "/out"); len(files) > 0 {
		t.Errorf("committed before the rejected records were kept: %v", files)
	}
	sinktest.Flush(t, s, 4)
	want := map[string]string{"a-000001.ndjson": "{\"kind\":\"a\"}\n", "b-000001.ndjson": "{\"kind\":\"b\"}\n"}
	if diff := cmp.Diff(want, tree(t, mem, "/out")); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}

func TestAFullDiskIsWaitedOutWithTheSameBytes(t *testing.T) {
	write := func(fullAt int64) map[string][]byte {
		fsys := vfs.NewFaulty(vfs.NewMem())
		s, _, _ := resume(t, config(fsys, "/out/{n}.ndjson.gz"), sinktest.NewEnv(t))
		fsys.Limit(fullAt)
		pad := strings.Repeat("0123456789abcdef", 1000)
		full := false
		for n := range int64(400) {
			sinktest.Write(t, s, event(n, fmt.Sprintf(`{"n":%d,"i":%d,"pad":%q}`, n%3, n*n*7919, pad[n:])))
			full = full || fullAt > 0 && s.Due(sinktest.Stamp)
		}
		if fullAt > 0 {
			if !full {
				t.Error("a full disk does not make a flush due")
			}
			for range 3 {
				sinktest.WantWaiting(t, s, 400, "no space left")
			}
		}
		fsys.Heal()
		sinktest.Flush(t, s, 400)
		return rawTree(t, fsys, "/out")
	}
	want := write(-1)
	for _, fullAt := range []int64{1, 5000, 20_000} {
		if diff := cmp.Diff(want, write(fullAt)); diff != "" {
			t.Errorf("full at %d: files differ (-want +got):\n%s", fullAt, diff)
		}
	}
}

func TestAFailedSyncIsNotTriedAgainOnTheSameFile(t *testing.T) {
	mem := vfs.NewMem()
	f := vfs.NewFaulty(mem)
	s, _, _ := resume(t, config(f, "/out/x.ndjson"), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0))
	f.Inject(vfs.Fault{Op: vfs.OpSync, Name: ".part"})
	sinktest.WantWaiting(t, s, 1, "syncing")
	opened := f.Count(vfs.OpOpen)
	sinktest.Flush(t, s, 1)
	if f.Count(vfs.OpOpen) == opened {
		t.Error("no new file was made after the failed sync")
	}
	if got := lines(t, mem, "/out"); !slices.Equal(got, []string{`{"n":0}`}) {
		t.Errorf("the file holds %q", got)
	}
}

func TestAPartThatReadsBackWrongStopsTheSink(t *testing.T) {
	mem := vfs.NewMem()
	f := vfs.NewFaulty(mem)
	s, _, _ := resume(t, config(f, "/out/x.ndjson"), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0))
	f.Inject(vfs.Fault{Op: vfs.OpSync, Name: ".part"})
	sinktest.WantWaiting(t, s, 1, "syncing")
	damaged, err := mem.OpenFile("/out/.daybook-shop-sink/parts/000001-000000.part", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := damaged.WriteAt([]byte("X"), 3); err != nil {
		t.Fatal(err)
	}
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(1)), "disk-broken")
}

func TestManyFilesNeedFewHandlesAndAskForAFlush(t *testing.T) {
	t.Parallel()
	d := &dying{FS: vfs.NewMem(), left: -1}
	c := config(d, "/out/{user}/log.ndjson")
	s, _, _ := resume(t, c, sinktest.NewEnv(t))
	pad := strings.Repeat("p", 600_000)
	for n := range int64(150) { // 150 files that are too large for the memory
		sinktest.Write(t, s, event(n, fmt.Sprintf(`{"user":%d,"pad":%q}`, n, pad)))
	}
	for n := int64(150); n < 1500; n++ {
		if s.Due(sinktest.Stamp) != (n >= 1000) {
			t.Fatalf("after %d records, due is %v", n, s.Due(sinktest.Stamp))
		}
		sinktest.Write(t, s, event(n, fmt.Sprintf(`{"user":"u%d"}`, n)))
	}
	sinktest.Flush(t, s, 1500)
	if n := len(rawTree(t, d.FS, "/out")); n != 1500 {
		t.Errorf("%d files, want 1500", n)
	}
	if d.most > file.MaxOpen+4 {
		t.Errorf("%d files were open at a time, want at most %d", d.most, file.MaxOpen)
	}
	sinktest.Write(t, s, numbered(1500))
	sinktest.WantRejected(t, s, 1501, 1500)
	sinktest.Write(t, s, event(1501, `{"user":"last"}`))
	sinktest.Flush(t, s, 1502)
	text, err := vfs.ReadFile(d.FS, "/out/.daybook-shop-sink/manifest")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 2000 {
		t.Errorf("the manifest has %d bytes after a flush of one file", len(text))
	}
}

func TestTheSystemsErrorsSayWhatToDo(t *testing.T) {
	mem := vfs.NewMem()
	f := vfs.NewFaulty(mem)
	s, _, _ := resume(t, config(f, "/out/x.ndjson"), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0))
	f.Inject(vfs.Fault{Op: vfs.OpRename, Name: "x-000001", Err: syscall.EXDEV})
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(1)), "folder-on-other-device")
	var stop *pipeline.StopError
	if errors.As(s.Flush(t.Context(), sinktest.UpTo(1)), &stop) {
		t.Error("the fault is gone, but the sink still stops")
	}
}

// Somebody removes the folder of a sink that runs, or its disk goes: what to do is said, and nothing is lost if it comes back.
func TestAFolderThatWasTakenAwayIsWaitedFor(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	s, _, _ := resume(t, config(vfs.OS{}, filepath.Join(root, "x.ndjson")), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0))
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sinktest.WantWaiting(t, s, 1, root, "was taken away", "start daybook again")
	}
	if err := os.Rename(root+".away", root); err != nil {
		t.Fatal(err)
	}
	sinktest.Flush(t, s, 1)
	if files, err := filepath.Glob(filepath.Join(root, "x-*.ndjson")); err != nil || len(files) != 1 {
		t.Errorf("there are the files %v, %v; want one", files, err)
	}
}

// A copy of the folder is put in its place while a file is being written: what goes to the old one is in no file of the new one.
func TestAFolderThatWasReplacedStopsTheSink(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	s, _, _ := resume(t, config(vfs.OS{}, filepath.Join(root, "x.ndjson")), sinktest.NewEnv(t))
	large := numbered(0)
	large.Value = []byte(`{"text":"` + strings.Repeat("x", 2<<20) + `"}`)
	sinktest.Write(t, s, large) // a part of it is in the file
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(root, os.DirFS(root+".away")); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, numbered(1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "folder-replaced")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, c, _ := resume(t, config(vfs.OS{}, filepath.Join(root, "x.ndjson")), sinktest.NewEnv(t))
	if len(c.Offsets) > 0 {
		t.Errorf("the cursor is %v, though nothing is in files", c.Offsets)
	}
	sinktest.Write(t, again, large, numbered(1))
	sinktest.Flush(t, again, 2)
}
