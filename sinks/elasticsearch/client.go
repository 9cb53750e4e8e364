package elasticsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	es "github.com/elastic/go-elasticsearch/v8"
)

// client sends requests, each once: the deliver loop retries.
type client struct {
	base      *es.BaseClient
	transport *http.Transport
	timeout   time.Duration
}

func newClient(c *Config) (*client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = !c.Compress
	options := []es.Option{
		es.WithAddresses(c.URLs...),
		es.WithDisableMetaHeader(),
		es.WithTransportOptions(elastictransport.WithTransport(transport), elastictransport.WithDisableRetry()),
	}
	if c.User != "" {
		options = append(options, es.WithBasicAuth(c.User, c.Password.Reveal()))
	}
	if c.APIKey.IsSet() {
		options = append(options, es.WithAPIKey(c.APIKey.Reveal()))
	}
	if c.Compress {
		options = append(options, es.WithCompression())
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading ca_file: %w", err)
		}
		pool, err := certificates(c.CAFile, pem)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = pool
	}
	base, err := es.NewBase(options...)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	return &client{base: base, transport: transport, timeout: c.Timeout}, nil
}

// answer is a complete answer of the server, whatever its status.
type answer struct {
	status int
	body   []byte
}

// do sends a request and reads its answer to the end. path is escaped by the caller. The
// error is one of the connection: it says nothing of what the server has done.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, path, content)
	if err != nil {
		return answer{}, err
	}
	request.URL.RawQuery = query.Encode()
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		if strings.HasSuffix(path, "/_bulk") {
			request.Header.Set("Content-Type", "application/x-ndjson")
		}
	}
	response, err := c.base.Perform(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	return answer{status: response.StatusCode, body: text}, nil
}

// call is do for requests that must succeed: the answer is decoded into result, unless
// that is nil. What is no success is an *answerError.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	a, err := c.do(ctx, method, path, query, text)
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
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return nil
}

func (c *client) close() error {
	c.transport.CloseIdleConnections()
	return nil
}
