package redis

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/certs"
	"github.com/daybook-data/daybook/pipeline"
)

// Config is the section of a Redis sink.
type Config struct {
	Addr         string
	User         string
	Password     configs.Secret
	DB           int
	TLS          bool
	CAFile       string
	Key          string
	Type         string
	Columns      []string
	TTL          time.Duration
	TombstoneTTL time.Duration
	Truncate     string
	Timeout      time.Duration
}

// Spec returns the sink's entry in the list of sinks.
func Spec() pipeline.SinkSpec {
	return pipeline.SinkSpec{
		Kind: "redis",
		Doc:  "Keeps rows in Redis, as hashes or JSON texts, the newest version of each.",
		New:  func() pipeline.SinkConfig { return new(Config) },
	}
}

// Fields declares the section.
func (c *Config) Fields(d *configs.Fields) {
	d.String(&c.Addr, "addr", "127.0.0.1:6379", "Address of the server, host:port. Not a cluster.", configs.HostPort)
	d.String(&c.User, "user", "", "User name (ACL); empty is the default user.")
	d.Secret(&c.Password, "password", "Password of the user, {env: NAME} or {file: PATH}.")
	d.Int(&c.DB, "db", 0, "Number of the database.", configs.Range(0, 1<<20))
	d.Bool(&c.TLS, "tls", false, "Speak TLS.")
	d.String(&c.CAFile, "ca_file", "", "File of CA certificates (PEM) that sign the server's; empty trusts the system's.")
	d.String(&c.Key, "key", "", "Key of a row, a template: {id} is a column, {key} the record's key, {table}, {db}, {stream}.", configs.Required, configs.NotEmpty)
	d.String(&c.Type, "type", "hash", "hash has a field for each column; string holds the row as JSON.", configs.Enum("hash", "string"))
	d.Strings(&c.Columns, "columns", nil, "Only these columns become fields of a hash; all where this is missing.")
	d.Duration(&c.TTL, "ttl", 0, "Rows expire this long after their last change; 0s never.")
	d.Duration(&c.TombstoneTTL, "tombstone_ttl", 24*time.Hour, "How long the version of a deleted or expired row is kept, so that an older record doesn't bring it back.", configs.Positive)
	d.String(&c.Truncate, "truncate", "delete", "What TRUNCATE TABLE does: delete removes the table's rows, ignore keeps them, stop stops the sink.", configs.Enum("delete", "ignore", "stop"))
	d.Duration(&c.Timeout, "timeout", 10*time.Second, "How long to wait for the server's answer.", configs.Positive)
}

// Check holds the rules between the fields.
func (c *Config) Check(at *configs.At) {
	if _, err := c.template(); err != nil {
		at.Errorf("key", "%v", err)
	}
	if len(c.Columns) > 0 && c.Type != "hash" {
		at.Errorf("columns", "a string holds the whole row: columns are for `type: hash`")
	}
	if c.CAFile != "" && !c.TLS {
		at.Errorf("ca_file", "is of no use without `tls: true`")
	}
	if _, err := c.security(); err != nil {
		at.Errorf("ca_file", "%v", err)
	}
}

// Into lets the sink write below another prefix: TARGET:KEY.
func (c *Config) Into(target string) error {
	if target == "" || strings.ContainsAny(target, "{}") || strings.HasPrefix(target, reserved) {
		return fmt.Errorf("%q can't be the prefix of a shadow's keys: want a text without braces that does not begin with %s", target, reserved)
	}
	c.Key = target + ":" + c.Key
	return nil
}

// OpenSink returns the sink; it connects at the first Flush.
func (c *Config) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	template, err := c.template()
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	security, err := c.security()
	if err != nil {
		return nil, err
	}
	return open(c, env, template, security), nil
}

// template parses the key. A date or op has no place in it: both differ between the
// record that wrote a row and the one that is to find it again.
func (c *Config) template() (*pipeline.Template, error) {
	t, err := pipeline.ParseTemplate(c.Key, pipeline.PlaceKey, pipeline.PlaceField, pipeline.PlaceTable,
		pipeline.PlaceDB, pipeline.PlaceStream, pipeline.PlaceSource, pipeline.PlaceSink)
	if err != nil {
		return nil, err
	}
	if !t.Uses(pipeline.PlaceKey) && !t.Uses(pipeline.PlaceField) {
		return nil, fmt.Errorf("%q names neither {key} nor a column: all rows would have one key", c.Key)
	}
	if strings.HasPrefix(c.Key, reserved) {
		return nil, fmt.Errorf("keys that begin with %s are Daybook's own", reserved)
	}
	return t, nil
}

// security returns the settings of TLS, nil for a plain connection.
func (c *Config) security() (config *tls.Config, err error) {
	if !c.TLS {
		return nil, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return config, nil
	}
	if config.RootCAs, err = certs.Authorities(c.CAFile); err != nil {
		return nil, fmt.Errorf("reading ca_file: %w", err)
	}
	return config, nil
}
