package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
)

// Config is the section of a file sink.
type Config struct {
	Path     string
	Compress string
	Roll     RollConfig
	// FS is where the files are; nil is the system's. It is not a field of the section.
	FS vfs.FS
}

// RollConfig says when files end.
type RollConfig struct {
	Size int64
	Time time.Duration
}

// Spec returns the sink's entry in the list of sinks.
func Spec() pipeline.SinkSpec {
	return pipeline.SinkSpec{
		Kind: "file",
		Doc:  "Writes records into files, one JSON text a line, each record once; a file is visible when it is complete.",
		New:  func() pipeline.SinkConfig { return new(Config) },
	}
}

// Fields declares the section.
func (c *Config) Fields(d *configs.Fields) {
	d.String(&c.Path, "path", "", "Path of the files, a template: {stream}, {table}, {yyyy-MM-dd}, {HH}, {field}... A number is put before the extension: 09.ndjson.zst becomes 09-000001.ndjson.zst.", configs.Required, configs.NotEmpty)
	d.String(&c.Compress, "compress", "auto", "auto goes by the extension: .gz, .zst, else none.", configs.Enum("auto", "none", "gzip", "zstd"))
	d.Sub(&c.Roll, "roll", "When files end and become visible: all files of the sink together, when one of these is reached.")
}

// Fields declares when files end.
func (r *RollConfig) Fields(d *configs.Fields) {
	d.Size(&r.Size, "size", 64*configs.MiB, "When the largest file has about this size.", configs.Positive)
	d.Duration(&r.Time, "time", 5*time.Minute, "When the append stamps pass a multiple of this.", configs.Range(int64(time.Second), int64(366*24*time.Hour)))
}

// Check holds the rules between the fields.
func (c *Config) Check(at *configs.At) {
	if _, err := newPlace(c.Path); err != nil {
		at.Errorf("path", "%v", err)
	}
	if _, err := c.codec(); err != nil {
		at.Errorf("compress", "%v", err)
	}
}

// Claims returns the path; where it tells streams apart, that of each.
func (c *Config) Claims(streams []string) []string {
	path := filepath.Clean(c.Path)
	if !strings.Contains(path, "{stream}") {
		return []string{path}
	}
	claims := make([]string, len(streams))
	for i, stream := range streams {
		claims[i] = strings.ReplaceAll(path, "{stream}", stream)
	}
	return claims
}

// Into lets the sink write into another folder: beside the one that the path begins with if target is a plain name,
// else the one that target names.
func (c *Config) Into(target string) error {
	p, err := newPlace(c.Path)
	if err != nil {
		return err
	}
	if target == "" || target == "." || target == ".." || strings.ContainsAny(target, "{}\x00") {
		return fmt.Errorf("%q can't be the folder of a shadow: want a name, or a path without braces", target)
	}
	if !strings.ContainsRune(target, '/') {
		target = filepath.Join(filepath.Dir(p.root), target)
	}
	if filepath.Clean(target) == p.root {
		return fmt.Errorf("%q is the folder of the live files", target)
	}
	c.Path = filepath.Clean(target) + "/" + p.below
	return nil
}

// codec returns how files are compressed.
func (c *Config) codec() (codec, error) {
	byName := plain
	switch {
	case strings.HasSuffix(c.Path, ".gz"):
		byName = gzipped
	case strings.HasSuffix(c.Path, ".zst"):
		byName = zstandard
	}
	chosen, ok := map[string]codec{"none": plain, "gzip": gzipped, "zstd": zstandard}[c.Compress]
	switch {
	case !ok:
		return byName, nil
	case byName != plain && chosen != byName:
		return plain, fmt.Errorf("%s contradicts the extension of path: leave one of them out", c.Compress)
	}
	return chosen, nil
}

// OpenSink returns the sink. Files and folders are touched by Resume at first.
func (c *Config) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	p, err := newPlace(c.Path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	kind, err := c.codec()
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	packer, err := newPacker(kind)
	if err != nil {
		return nil, fmt.Errorf("setting up the compression: %w", err)
	}
	if c.Roll.Size <= 0 || c.Roll.Time <= 0 {
		return nil, errors.New("roll: size and time must be above zero")
	}
	fsys := c.FS
	if fsys == nil {
		fsys = vfs.OS{}
	}
	return newSink(fsys, p, packer, c.Roll, env), nil
}
