package file_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/file"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// config is a section whose files lie in fsys below root.
func config(fsys vfs.FS, template string) *file.Config {
	return &file.Config{Path: template, Compress: "auto", Roll: file.RollConfig{Size: 64 << 20, Time: time.Hour}, FS: fsys}
}

// tree returns every file that a reader who lists folders finds, with its contents unpacked, by path. Hidden names are
// no part of it.
func tree(t testing.TB, fsys vfs.FS, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, data := range rawTree(t, fsys, root) {
		all[name] = string(unpack(t, name, data))
	}
	return all
}

func rawTree(t testing.TB, fsys vfs.FS, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		names, err := fsys.ReadDir(dir)
		if err != nil {
			return // not made yet
		}
		for _, n := range names {
			name := path.Join(dir, n)
			if strings.HasPrefix(n, ".") {
				continue
			}
			info, err := fsys.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(name)
				continue
			}
			data, err := vfs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(name, root+"/")] = data
		}
	}
	walk(root)
	return all
}

func unpack(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(data)
	var err error
	switch path.Ext(name) {
	case ".gz":
		r, err = gzip.NewReader(r)
	case ".zst":
		r, err = zstd.NewReader(r)
	}
	if err == nil {
		data, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatalf("unpacking %s: %v", name, err)
	}
	return data
}

// lines returns the lines of all files, the files in the order of their names.
func lines(t testing.TB, fsys vfs.FS, root string) []string {
	t.Helper()
	files := tree(t, fsys, root)
	var names []string
	for n := range files {
		names = append(names, n)
	}
	sort.Strings(names)
	var all []string
	for _, n := range names {
		if files[n] == "" || files[n][len(files[n])-1] != '\n' {
			t.Fatalf("%s does not end in a whole line", n)
		}
		all = append(all, strings.Split(strings.TrimSuffix(files[n], "\n"), "\n")...)
	}
	return all
}

// event is a record with a JSON object for its value, one a second.
func event(offset int64, value string) pipeline.Delivery {
	at := sinktest.Stamp + offset*1_000_000
	d, err := pipeline.NewDelivery(pipeline.Record{
		Stream: sinktest.Stream, Offset: offset, Value: []byte(value), Time: at, Stamp: at, Source: "app",
	}, 0)
	if err != nil {
		panic(err)
	}
	return d
}

// resume opens a sink and resumes it.
func resume(t testing.TB, c pipeline.SinkConfig, env pipeline.SinkEnv) (*file.Sink, pipeline.Checkpoint, bool) {
	t.Helper()
	s := sinktest.Open(t, c, env).(*file.Sink)
	cp, ok, err := s.Resume(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, cp, ok
}

func numbered(n int64) pipeline.Delivery { return event(n, fmt.Sprintf(`{"n":%d}`, n)) }
