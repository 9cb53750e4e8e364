package nginx

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// Spec describes the source for the list of sources.
func Spec() pipeline.SourceSpec {
	return pipeline.SourceSpec{
		Kind: "nginx",
		Doc:  "Lines of nginx's access logs.",
		New:  func() pipeline.SourceConfig { return &Config{} },
	}
}

// Config is the section `nginx` of a source.
type Config struct {
	Paths      []string
	Exclude    []string
	Format     string
	Escape     string
	TimeField  string
	Start      string
	MaxLine    int64
	RotateWait time.Duration
}

var _ configs.Checker = (*Config)(nil)

// Fields declares the section.
func (c *Config) Fields(d *configs.Fields) {
	d.Strings(&c.Paths, "paths", nil, "Files to follow, with * ? and [ ] for parts of a name; files compressed by gzip (.gz) are read too. Rotated files of a log that is followed are found by themselves.", configs.Required, configs.NotEmpty, globRule)
	d.Strings(&c.Exclude, "exclude", nil, "Files among them that are not to be read.", globRule)
	d.String(&c.Format, "format", "combined", "Format of the lines: combined, or the text of a log_format as it stands in nginx.conf, or that whole directive.")
	d.String(&c.Escape, "escape", "default", "The escape= of the log_format, where `format` is not a whole directive that says it.", configs.Enum("default", "json", "none"))
	d.String(&c.TimeField, "time_field", "", "Variable with the event time; empty takes $msec, $time_iso8601 or $time_local, the first that the format has.")
	d.String(&c.Start, "start", "beginning", "Where the first start begins in files that are there; later files are read from their beginning.", configs.Enum("beginning", "end"))
	d.Size(&c.MaxLine, "max_line", configs.MiB, "A longer line is kept in numbered pieces of this size.", configs.Range(1024, 4*configs.MiB))
	d.Duration(&c.RotateWait, "rotate_wait", 10*time.Second, "How long a rotated file must be silent before it counts as finished; nginx's workers write to it until they have reopened their logs.", configs.Positive)
}

var globRule = configs.Func("absolute or relative paths, * ? and [ ] allowed", func(patterns []string) error {
	for _, p := range patterns {
		if _, err := filepath.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("%q is not a well-formed pattern", p)
		}
	}
	return nil
})

// Check compiles the format, so that its faults show before anything runs.
func (c *Config) Check(at *configs.At) {
	if _, err := compile(c.Format, escape(c.Escape), ""); err != nil {
		at.Errorf("format", "%v", err)
		return
	}
	if _, err := c.template(); err != nil {
		at.Errorf("time_field", "%v", err)
	}
}

func (c *Config) template() (*template, error) {
	return compile(c.Format, escape(c.Escape), c.TimeField)
}

// OpenSource returns the source. It opens no file.
func (c *Config) OpenSource(env pipeline.SourceEnv) (pipeline.Source, error) {
	t, err := c.template()
	if err != nil {
		return nil, fmt.Errorf("reading log_format: %w", err)
	}
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if t.timeField < 0 {
		log.Warn("the log_format has no time; the time of reading counts: add $msec or $time_iso8601 to it")
	}
	return &Source{config: *c, template: t, once: env.Once, log: log}, nil
}
