package http

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"mime"
	nethttp "net/http"
	"os"
	"strings"

	"github.com/daybook-data/daybook/configs"
)

// bodyForm reads the Content-Type.
func bodyForm(header string) (form, error) {
	if header == "" {
		return formAny, nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil {
		return 0, refuse(nethttp.StatusUnsupportedMediaType, "Content-Type %q is not well-formed", clip(header))
	}
	switch cs := strings.ToLower(params["charset"]); cs {
	case "", "utf-8", "utf8", "us-ascii":
	default:
		return 0, refuse(nethttp.StatusUnsupportedMediaType, "charset %q: send UTF-8", clip(cs))
	}
	switch {
	case media == "application/json", strings.HasSuffix(media, "+json"):
		return formJSON, nil
	case media == "application/x-ndjson", media == "application/ndjson", media == "application/jsonl", media == "application/x-jsonlines":
		return formLines, nil
	case media == "text/plain":
		return formAny, nil
	}
	return 0, refuse(nethttp.StatusUnsupportedMediaType, "Content-Type %q: send application/json or application/x-ndjson", clip(media))
}

// readBody returns the request's body, unpacked. Neither what was sent nor what it
// unpacks to is read beyond most bytes, so a gzip bomb costs no more than another body.
func readBody(r *nethttp.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	sent := &io.LimitedReader{R: r.Body, N: most + 1}
	unpacked, err := unpack(r.Header.Get("Content-Encoding"), sent)
	if err != nil {
		return nil, readProblem(err, sent, most)
	}
	body, err := io.ReadAll(io.LimitReader(unpacked, most+1))
	if err != nil {
		return nil, readProblem(err, sent, most)
	}
	if int64(len(body)) > most || sent.N == 0 {
		return nil, tooLarge(most)
	}
	return body, nil
}

func unpack(encoding string, sent io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return sent, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(sent)
	case "deflate":
		// The standard means zlib; some clients send bare deflate under this name.
		b := bufio.NewReader(sent)
		if h, err := b.Peek(2); err == nil && h[0]&0x0f == 8 && (uint(h[0])<<8|uint(h[1]))%31 == 0 {
			return zlib.NewReader(b)
		}
		return flate.NewReader(b), nil
	}
	return nil, refuse(nethttp.StatusUnsupportedMediaType, "Content-Encoding %q: send gzip, deflate or none", clip(encoding))
}

// readProblem words why a body could not be read.
func readProblem(err error, sent *io.LimitedReader, most int64) error {
	var r *refusal
	switch {
	case errors.As(err, &r):
		return r
	case sent.N == 0:
		return tooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(nethttp.StatusRequestTimeout, "the body took too long to arrive")
	}
	return malformed(place{}, "the body can't be read: %v", err)
}

func tooLarge(most int64) *refusal {
	return refuse(nethttp.StatusRequestEntityTooLarge, "the body is larger than %s", sizeText(most))
}

func sizeText(n int64) string {
	if n%configs.MiB == 0 {
		return fmt.Sprintf("%d MiB", n/configs.MiB)
	}
	return fmt.Sprintf("%d bytes", n)
}
