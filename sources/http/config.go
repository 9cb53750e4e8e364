package http

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// Spec describes the source for the list of sources.
func Spec() pipeline.SourceSpec {
	return pipeline.SourceSpec{
		Kind: "http",
		Doc:  "Events that applications post as JSON.",
		New:  func() pipeline.SourceConfig { return &Config{} },
	}
}

// Config is the section `http` of a source.
type Config struct {
	Listen       string
	Path         string
	TimeField    string
	TimeUnit     string
	TimeZone     string
	IDField      string
	KeyField     string
	DedupeWindow time.Duration
	Token        configs.Secret
	Origins      []string
	MaxBody      int64
	MaxElements  int
	MaxInFlight  int
	ReadTimeout  time.Duration
	Timeout      time.Duration
	TLS          TLSConfig
}

// TLSConfig names the server's certificate. Both fields are empty for plain HTTP.
type TLSConfig struct {
	Cert string
	Key  string
}

var _ configs.Checker = (*Config)(nil)

// Fields declares the section.
func (c *Config) Fields(d *configs.Fields) {
	d.String(&c.Listen, "listen", "", "Address to listen on, host:port.", configs.Required, configs.HostPort)
	d.String(&c.Path, "path", "/", "Path of the URL that takes events.", configs.Pattern(`/[!-~]*`, "a path that begins with /"))
	d.String(&c.IDField, "id_field", "", "Top-level key with the event's id; an event sent again with the same id within dedupe_window is stored once. Where set, an event without it is refused.")
	d.String(&c.KeyField, "key_field", "", "Top-level key with the record's key: events of one key stay in order. An event without it has no key.")
	d.String(&c.TimeField, "time_field", "", "Top-level key with the event time, RFC 3339 or a number of time_unit. Where it is missing or null the time of arrival counts.")
	d.String(&c.TimeUnit, "time_unit", "none", "Unit of a time that is a number, since 1970 UTC; none refuses numbers.", configs.Enum("none", "s", "ms", "us", "ns"))
	d.String(&c.TimeZone, "time_zone", "", "IANA zone of times without one, such as Europe/Paris; empty refuses them.", zoneRule)
	d.Duration(&c.DedupeWindow, "dedupe_window", time.Hour, "How long ids are remembered, at least, across restarts too.")
	d.Secret(&c.Token, "token", "Bearer token that every request must carry; without it whoever reaches the address may append.")
	d.Strings(&c.Origins, "origins", nil, "Origins of web pages that may post from a browser (CORS), such as https://shop.example; * is all.")
	d.Size(&c.MaxBody, "max_body", configs.MiB, "Largest body, as sent and unpacked; above it 413.", configs.Positive)
	d.Int(&c.MaxElements, "max_elements", 10_000, "Most events in one request; above it 413.", configs.Positive)
	d.Int(&c.MaxInFlight, "max_in_flight", 64, "Requests held at once, above it 429. Together with max_body this bounds the memory: about three times their product.", configs.Range(1, 65536))
	d.Duration(&c.ReadTimeout, "read_timeout", 30*time.Second, "How long a client may take to send a request.", configs.Positive)
	d.Duration(&c.Timeout, "timeout", 10*time.Second, "How long the journal may take to confirm a request; after it 503.", configs.Positive)
	d.Sub(&c.TLS, "tls", "HTTPS; plain HTTP where this is missing.")
}

// Remembers implements pipeline.Rememberer.
func (c *Config) Remembers() time.Duration {
	if c.IDField == "" {
		return 0
	}
	return c.DedupeWindow
}

// Fields declares the files of the certificate.
func (t *TLSConfig) Fields(d *configs.Fields) {
	d.String(&t.Cert, "cert", "", "File with the certificate chain, PEM. Read again when it changes.")
	d.String(&t.Key, "key", "", "File with the private key, PEM.")
}

// Check holds the rules between the fields.
func (t *TLSConfig) Check(at *configs.At) {
	if (t.Cert == "") != (t.Key == "") {
		at.Errorf("", "`cert` and `key` come together")
	}
}

// Check holds the rules between the fields.
func (c *Config) Check(at *configs.At) {
	if c.IDField == "" && at.Has("dedupe_window") {
		at.Errorf("dedupe_window", "needs `id_field`: without an id nothing tells that an event was sent before")
	}
	for _, key := range []string{"time_unit", "time_zone"} {
		if c.TimeField == "" && at.Has(key) {
			at.Errorf(key, "needs `time_field`: there is no time to read")
		}
	}
	if at.Has("token") && c.Token.Reveal() == "" {
		at.Errorf("token", "is empty: anybody could append; give it a value, or remove the key if that is meant")
	}
}

// zoneRule wants a zone that this program knows.
var zoneRule = configs.Func("IANA zone", func(name string) error {
	if name == "" {
		return nil
	}
	if _, err := loadZone(name); err != nil {
		return fmt.Errorf("%q is not a known zone: want an IANA name such as Europe/Paris or UTC", name)
	}
	return nil
})

// OpenSource returns the source.
func (c *Config) OpenSource(env pipeline.SourceEnv) (pipeline.Source, error) {
	s := &Source{config: *c, once: env.Once, log: env.Log, now: time.Now}
	if c.TimeZone != "" {
		zone, err := loadZone(c.TimeZone)
		if err != nil {
			return nil, fmt.Errorf("loading time zone: %w", err)
		}
		s.zone = zone
	}
	return s, nil
}

// exposed reports whether others than this machine can reach the address.
func (c *Config) exposed() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return true
	}
	ip := net.ParseIP(host)
	return !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback())
}
