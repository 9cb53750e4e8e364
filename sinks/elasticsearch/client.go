package elasticsearch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// client sends requests, each once: the deliver loop retries. It is made of the parts of
// go-elasticsearch below its Client, whose package brings the typed API along: 850
// packages that a fresh checkout would compile for minutes.
type client struct {
	base      *elastictransport.Client
	transport *http.Transport
	timeout   time.Duration
	compress  bool
}

func newClient(c *Config) (*client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = !c.Compress
	options := []elastictransport.Option{
		elastictransport.WithUserAgent("daybook"), elastictransport.WithTransport(transport), elastictransport.WithDisableRetry(),
	}
	var urls []*url.URL
	for _, text := range c.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("urls: %w", err)
		}
		urls = append(urls, u)
	}
	options = append(options, elastictransport.WithURLs(urls...))
	if c.User != "" {
		options = append(options, elastictransport.WithBasicAuth(c.User, c.Password.Reveal()))
	}
	if c.APIKey.IsSet() {
		options = append(options, elastictransport.WithAPIKey(c.APIKey.Reveal()))
	}
	security, err := c.security()
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	if security != nil {
		transport.TLSClientConfig = security
	}
	base, err := elastictransport.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	return &client{base: base, transport: transport, timeout: c.Timeout, compress: c.Compress}, nil
}

// answer is a complete answer of the server, whatever its status.
type answer struct {
	status int
	body   []byte
}

// do sends a request and reads its answer to the end. Names in its path are escaped by
// the caller. The error is one of the connection: it says nothing of what the server has
// done.
func (c *client) do(ctx context.Context, request esapi.Request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := request.Do(ctx, c.base)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	if product := response.Header.Get(productHeader); product != "Elasticsearch" && !response.IsError() {
		return answer{}, fmt.Errorf("what answers is not Elasticsearch 7.14 or later: %s is %q", productHeader, product)
	}
	return answer{status: response.StatusCode, body: text}, nil
}

// productHeader is what a server says it is.
const productHeader = "X-Elastic-Product"

// call is do for requests that must succeed: the answer is decoded into result, unless
// that is nil. What is no success is an *answerError.
func (c *client) call(ctx context.Context, request esapi.Request, result any) error {
	a, err := c.do(ctx, request)
	if err != nil {
		return err
	}
	if a.status >= 300 {
		return newAnswerError(a)
	}
	if result == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(result); err != nil {
		return fmt.Errorf("reading the answer to %T: %w", request, err)
	}
	return nil
}

// bulk is the request for the lines of a bulk body.
func (c *client) bulk(lines []byte) (esapi.BulkRequest, error) {
	// The header becomes the request's own, to which the transport adds.
	r := esapi.BulkRequest{FilterPath: onlyWhatMatters, Header: http.Header{"Content-Type": {"application/x-ndjson"}}}
	if !c.compress {
		r.Body = bytes.NewReader(lines)
		return r, nil
	}
	// Not by the transport: it takes a buffer back for the next request while a
	// connection may still be sending it.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(lines); err != nil {
		return r, err
	}
	if err := z.Close(); err != nil {
		return r, err
	}
	r.Body = &packed
	r.Header.Set("Content-Encoding", "gzip")
	return r, nil
}

// jsonOf is the body of a request.
func jsonOf(v any) io.Reader {
	text, err := json.Marshal(v)
	if err != nil {
		return unreadable{err}
	}
	return bytes.NewReader(text)
}

// unreadable makes the request that it is the body of fail.
type unreadable struct{ err error }

func (u unreadable) Read([]byte) (int, error) { return 0, u.err }

func (c *client) close() error {
	c.transport.CloseIdleConnections()
	return nil
}
