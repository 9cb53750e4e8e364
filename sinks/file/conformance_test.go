package file_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestPlainFilesConform(t *testing.T)      { conform(t, "{stream}/all.ndjson") }
func TestGzippedFilesConform(t *testing.T)    { conform(t, "{stream}/all.ndjson.gz") }
func TestCompressedFilesConform(t *testing.T) { conform(t, "all.ndjson.zst") }

func conform(t *testing.T, template string) {
	t.Parallel()
	sinktest.Run(t, sinktest.Suite{Keeps: sinktest.Every, New: func(t *testing.T) sinktest.Destination {
		return &folder{root: filepath.Join(t.TempDir(), "out"), template: template, fs: vfs.NewFaulty(vfs.OS{})}
	}})
}

// folder is a real folder on a disk that can break.
type folder struct {
	root, template string
	fs             *vfs.Faulty
}

func (f *folder) Config(*testing.T) pipeline.SinkConfig {
	return config(f.fs, f.root+"/"+f.template)
}

func (f *folder) Contents(t *testing.T) []sinktest.Row {
	var rows []sinktest.Row
	for _, line := range lines(t, f.fs, f.root) {
		rows = append(rows, sinktest.ParseRow(t, []byte(line)))
	}
	return rows
}

// Break lets every operation fail that a flush needs.
func (f *folder) Break(*testing.T) func() {
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir} {
		f.fs.Inject(vfs.Fault{Op: op, Keep: true})
	}
	return f.fs.Heal
}

func TestSpecIsWhole(t *testing.T) {
	for _, template := range []string{"", "/", "x/", "out/{stream}/../x.ndjson", "out/{stream}/./x", "out/{stream", "a\x00b"} {
		c := config(vfs.NewMem(), template)
		if _, err := c.OpenSink(sinktest.NewEnv(t)); err == nil {
			t.Errorf("path %q was taken", template)
		}
	}
	c := config(vfs.NewMem(), "out/x.ndjson.gz")
	c.Compress = "zstd"
	if _, err := c.OpenSink(sinktest.NewEnv(t)); err == nil || !strings.Contains(err.Error(), "contradicts") {
		t.Errorf("compress: zstd with .gz: %v", err)
	}
}
