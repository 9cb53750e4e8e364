package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/file"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

const (
	hidden   = "/out/.daybook-shop-sink"
	manifest = hidden + "/manifest"
)

// filled is a target with one record.
func filled(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	s, _, _ := resume(t, config(mem, "/out/x.ndjson"), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(0))
	if err := s.Flush(t.Context(), pipeline.Checkpoint{Offsets: sinktest.UpTo(1).Offsets, Reorder: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return mem
}

func tryResume(t *testing.T, fsys vfs.FS, env pipeline.SinkEnv) (pipeline.Checkpoint, error) {
	t.Helper()
	s := sinktest.Open(t, config(fsys, "/out/x.ndjson"), env).(*file.Sink)
	c, _, err := s.Resume(t.Context())
	if cerr := s.Close(); cerr != nil {
		t.Error(cerr)
	}
	return c, err
}

func TestTheCheckpointComesBackWhole(t *testing.T) {
	c, err := tryResume(t, filled(t), sinktest.NewEnv(t))
	want := pipeline.Checkpoint{Offsets: sinktest.UpTo(1).Offsets, Reorder: []byte("state")}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Errorf("%v, checkpoint differs (-want +got):\n%s", err, diff)
	}
}

func TestALostOrOldManifestStopsTheSink(t *testing.T) {
	env := sinktest.NewEnv(t)
	env.Cursor = map[pipeline.Partition]int64{{Stream: sinktest.Stream}: 2}
	_, err := tryResume(t, filled(t), env)
	sinktest.WantStop(t, err, "target-set-back")
	_, err = tryResume(t, vfs.NewMem(), env)
	sinktest.WantStop(t, err, "target-lost")
	env.Cursor = map[pipeline.Partition]int64{{Stream: sinktest.Stream}: 1}
	if _, err = tryResume(t, filled(t), env); err != nil {
		t.Errorf("a manifest at the cursor: %v", err)
	}
}

func TestADamagedManifestStopsTheSink(t *testing.T) {
	good, err := vfs.ReadFile(filled(t), manifest)
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		for _, bad := range [][]byte{good[:n], append(bytes.Clone(good[:n]), append([]byte{good[n] ^ 4}, good[n+1:]...)...)} {
			mem := filled(t)
			if err := vfs.WriteFile(mem, manifest, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := tryResume(t, mem, sinktest.NewEnv(t))
			sinktest.WantStop(t, err, "manifest-damaged")
		}
	}
}

func TestStreamsMayBeAddedAndRemoved(t *testing.T) {
	mem := filled(t)
	env := sinktest.NewEnv(t)
	env.Streams = append(env.Streams, pipeline.StreamID{Name: "web.access", ID: "id-2"})
	s, _, _ := resume(t, config(mem, "/out/x.ndjson"), env)
	web := pipeline.Partition{Stream: "web.access", Number: 3}
	if err := s.Flush(t.Context(), pipeline.Checkpoint{Offsets: map[pipeline.Partition]int64{web: 5, {Stream: sinktest.Stream}: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := tryResume(t, mem, sinktest.NewEnv(t))
	if err != nil || c.Offsets[web] != 5 || c.Offsets[pipeline.Partition{Stream: sinktest.Stream}] != 2 {
		t.Errorf("resumed at %v, %v", c.Offsets, err)
	}
	env.Streams[1].ID = "another"
	_, err = tryResume(t, mem, env)
	sinktest.WantStop(t, err, "target-of-another")
}

func TestOnlyItsOwnLeftoversAreRemoved(t *testing.T) {
	mem := filled(t)
	for _, name := range []string{hidden + "/parts/000002-000000.part", hidden + "/parts/notes.txt", hidden + "/parts/000002-000000.part.bak", hidden + "/x", "/out/000002-000000.part"} {
		if err := vfs.WriteFile(mem, name, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tryResume(t, mem, sinktest.NewEnv(t)); err != nil {
		t.Fatal(err)
	}
	names, err := mem.ReadDir(hidden + "/parts")
	if diff := cmp.Diff([]string{"000002-000000.part.bak", "notes.txt"}, names); err != nil || diff != "" {
		t.Errorf("%v, left in the folder (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{hidden + "/x", "/out/000002-000000.part"} {
		if _, err := mem.Stat(name); err != nil {
			t.Errorf("%s was removed", name)
		}
	}
}

func TestAForeignFileIsNeverOverwritten(t *testing.T) {
	mem := filled(t)
	if err := vfs.WriteFile(mem, "/out/x-000002.ndjson", []byte("somebody's"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, _, _ := resume(t, config(mem, "/out/x.ndjson"), sinktest.NewEnv(t))
	sinktest.Write(t, s, numbered(1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "file-taken")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Once it is moved away, the next run goes on.
	if err := mem.Rename("/out/x-000002.ndjson", "/out/theirs"); err != nil {
		t.Fatal(err)
	}
	c, err := tryResume(t, mem, sinktest.NewEnv(t))
	if err != nil || c.Offsets[pipeline.Partition{Stream: sinktest.Stream}] != 2 {
		t.Fatalf("resumed at %v, %v", c.Offsets, err)
	}
	want := map[string]string{"x-000001.ndjson": "{\"n\":0}\n", "x-000002.ndjson": "{\"n\":1}\n", "theirs": "somebody's"}
	if diff := cmp.Diff(want, tree(t, mem, "/out")); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}

func TestReadersMayTakeFilesAway(t *testing.T) {
	mem := filled(t)
	if err := mem.Remove("/out/x-000001.ndjson"); err != nil {
		t.Fatal(err)
	}
	if _, err := tryResume(t, mem, sinktest.NewEnv(t)); err != nil {
		t.Error(err)
	}
}

func TestTwoRunsCannotShareAFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	first, _, _ := resume(t, config(nil, root+"/x.ndjson"), sinktest.NewEnv(t))
	second := sinktest.Open(t, config(nil, root+"/x.ndjson"), sinktest.NewEnv(t)).(*file.Sink)
	_, _, err := second.Resume(t.Context())
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("the second run: %v, want a *LockedError", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := second.Resume(t.Context()); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}

func TestIntoAnotherFolder(t *testing.T) {
	for _, c := range []struct{ path, target, want string }{
		{"./out/{stream}/{HH}.ndjson", "shadow", "shadow/{stream}/{HH}.ndjson"},
		{"/data/out/{stream}.ndjson", "shadow", "/data/shadow/{stream}.ndjson"},
		{"/data/out/x.ndjson", "/elsewhere/y/", "/elsewhere/y/x.ndjson"},
		{"{stream}.ndjson", "shadow", "shadow/{stream}.ndjson"},
		{"/data/out/x.ndjson", "out", ""},
		{"/data/out/x.ndjson", "..", ""},
		{"/data/out/x.ndjson", "", ""},
		{"/data/out/x.ndjson", "{a}", ""},
	} {
		conf := config(vfs.NewMem(), c.path)
		err := conf.Into(c.target)
		if c.want == "" && err == nil || c.want != "" && conf.Path != c.want {
			t.Errorf("%s into %q: %s, %v, want %q", c.path, c.target, conf.Path, err, c.want)
		}
	}
}

func TestAReadOnlyFolderStopsTheSink(t *testing.T) {
	f := vfs.NewFaulty(filled(t))
	f.Inject(vfs.Fault{Op: vfs.OpSyncDir, Err: os.ErrPermission})
	_, err := tryResume(t, f, sinktest.NewEnv(t))
	sinktest.WantStop(t, err, "folder-read-only")
}
