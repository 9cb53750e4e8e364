package elasticsearch

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/certs"
	"github.com/daybook-data/daybook/pipeline"
)

// Config is the section of an Elasticsearch sink.
type Config struct {
	URLs      []string
	User      string
	Password  configs.Secret
	APIKey    configs.Secret
	CAFile    string
	Index     string
	ID        string
	Routing   string
	Refresh   string
	MaxBatch  int64
	Compress  bool
	GCDeletes time.Duration
	IndexFile string
	Truncate  string
	Timeout   time.Duration
}

// Spec returns the sink's entry in the list of sinks.
func Spec() pipeline.SinkSpec {
	return pipeline.SinkSpec{
		Kind: "elasticsearch",
		Doc:  "Keeps rows as documents in Elasticsearch, the newest version of each.",
		New:  func() pipeline.SinkConfig { return new(Config) },
	}
}

// Fields declares the section.
func (c *Config) Fields(d *configs.Fields) {
	d.Strings(&c.URLs, "urls", []string{"http://127.0.0.1:9200"}, "Nodes of the cluster.", configs.NotEmpty, configs.HTTPURL)
	d.String(&c.User, "user", "", "User name.")
	d.Secret(&c.Password, "password", "Password of the user, {env: NAME} or {file: PATH}.")
	d.Secret(&c.APIKey, "api_key", "API key, encoded as Elasticsearch gives it; in place of user and password.")
	d.String(&c.CAFile, "ca_file", "", "File of CA certificates (PEM) that sign the nodes'; empty trusts the system's.")
	d.String(&c.Index, "index", "", "Index of a document, a template: {table}, {db}, {stream}, a column; for events also dates such as {yyyy.MM.dd}.", configs.Required, configs.NotEmpty)
	d.String(&c.ID, "id", "{key}", "Id of a document, a template: {key}, {id} for a column id. Empty, for events without identity: stream, partition and offset.")
	d.String(&c.Routing, "routing", "", "Routing of a document, a template. Empty routes by id.")
	d.String(&c.Refresh, "refresh", "interval", "When searches see what was written: interval leaves it to the index (a second), flush asks for it after each batch.", configs.Enum("interval", "flush"))
	d.Size(&c.MaxBatch, "max_batch", 8*configs.MiB, "Size of a bulk request; below the server's http.max_content_length.", configs.Range(1<<10, 512<<20))
	d.Bool(&c.Compress, "compress", false, "Send requests compressed (gzip): for slow networks.")
	d.Duration(&c.GCDeletes, "gc_deletes", 15*time.Minute, "How long an index remembers the version of a deleted document.", configs.Range(int64(time.Minute), int64(7*24*time.Hour)))
	d.String(&c.IndexFile, "index_file", "", "JSON file with the settings and mappings of indices that are made: {\"settings\": {...}, \"mappings\": {...}}.")
	d.String(&c.Truncate, "truncate", "delete", "What TRUNCATE TABLE does: delete removes the table's documents, ignore keeps them, stop stops the sink.", configs.Enum("delete", "ignore", "stop"))
	d.Duration(&c.Timeout, "timeout", time.Minute, "How long to wait for an answer.", configs.Positive)
}

// Check holds the rules between the fields.
func (c *Config) Check(at *configs.At) {
	if c.APIKey.IsSet() && (c.User != "" || c.Password.IsSet()) {
		at.Errorf("api_key", "stands in place of user and password: give one or the other")
	}
	if c.User == "" && c.Password.IsSet() {
		at.Errorf("password", "is of no use without `user`")
	}
	if _, err := parseIndex(c.Index); err != nil {
		at.Errorf("index", "%v", err)
	}
	if _, err := parseID(c.ID); err != nil {
		at.Errorf("id", "%v", err)
	}
	if _, err := parsePlace(c.Routing); err != nil {
		at.Errorf("routing", "%v", err)
	}
	if _, err := c.indexBody(); err != nil {
		at.Errorf("index_file", "%v", err)
	}
	if _, err := c.security(); err != nil {
		at.Errorf("ca_file", "%v", err)
	}
}

// Into lets the sink write to other indices: to TARGET itself where it has placeholders,
// or the index's template has none; else to TARGET-INDEX.
func (c *Config) Into(target string) error {
	t, err := parseIndex(target)
	if err != nil {
		return fmt.Errorf("the shadow's index: %w", err)
	}
	live, err := parseIndex(c.Index)
	if err != nil {
		return err
	}
	if t.String() == live.String() {
		return fmt.Errorf("%q is the live index", target)
	}
	if varies(t) || !varies(live) {
		c.Index = target
	} else {
		c.Index = target + "-" + c.Index
	}
	return nil
}

// OpenSink returns the sink; it connects at the first Flush.
func (c *Config) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	places, err := c.places()
	if err != nil {
		return nil, err
	}
	body, err := c.indexBody()
	if err != nil {
		return nil, fmt.Errorf("index_file: %w", err)
	}
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	return &Sink{
		config: c, env: env, places: places, client: client,
		indices: newIndices(client, env, body, c.GCDeletes),
		issued:  pipeline.NewIssued(env),
	}, nil
}

// places are the parsed templates of a document's place.
type places struct {
	index   *pipeline.Template
	id      *pipeline.Template // nil: by offset
	routing *pipeline.Template // nil: none
}

func (c *Config) places() (p places, err error) {
	if p.index, err = parseIndex(c.Index); err != nil {
		return p, fmt.Errorf("index: %w", err)
	}
	if p.id, err = parseID(c.ID); err != nil {
		return p, fmt.Errorf("id: %w", err)
	}
	if p.routing, err = parsePlace(c.Routing); err != nil {
		return p, fmt.Errorf("routing: %w", err)
	}
	return p, nil
}

// fixedPlaces are the placeholders whose value is the same in every record of a row.
// {op} and {partition} are not among them, nor are dates, save for events' indices.
func fixedPlaces(more ...pipeline.Placeholder) []pipeline.Placeholder {
	return append(more, pipeline.PlaceTable, pipeline.PlaceDB, pipeline.PlaceStream, pipeline.PlaceKey,
		pipeline.PlaceSource, pipeline.PlaceSink, pipeline.PlaceField)
}

func parseIndex(text string) (*pipeline.Template, error) {
	t, err := pipeline.ParseTemplate(text, fixedPlaces(pipeline.PlaceDate)...)
	if err != nil {
		return nil, err
	}
	if !varies(t) {
		if _, err := indexName(text); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// varies reports whether a template gives more than one text.
func varies(t *pipeline.Template) bool {
	for _, p := range fixedPlaces(pipeline.PlaceDate) {
		if t.Uses(p) {
			return true
		}
	}
	return false
}

func parseID(text string) (*pipeline.Template, error) {
	t, err := parsePlace(text)
	if err != nil || t == nil {
		return t, err
	}
	if !t.Uses(pipeline.PlaceKey) && !t.Uses(pipeline.PlaceField) {
		return nil, fmt.Errorf("%q names neither {key} nor a column: all rows would be one document", text)
	}
	return t, nil
}

func parsePlace(text string) (*pipeline.Template, error) {
	if text == "" {
		return nil, nil
	}
	return pipeline.ParseTemplate(text, fixedPlaces()...)
}

// indexBody reads index_file: what a new index is made with.
func (c *Config) indexBody() (body indexBody, err error) {
	if c.IndexFile == "" {
		return body, nil
	}
	text, err := os.ReadFile(c.IndexFile)
	if err != nil {
		return body, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return body, fmt.Errorf("reading %s: %w", c.IndexFile, err)
	}
	if d.More() {
		return body, errors.New("more text follows the JSON object in " + c.IndexFile)
	}
	return body, nil
}

// security is how the nodes' certificates are judged; nil is as the system does.
func (c *Config) security() (*tls.Config, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pool, err := certs.Authorities(c.CAFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}
