package http_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestABodyAboveTheLimitIs413(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	large := `{"a":"` + strings.Repeat("x", 3<<20) + `"}`
	s.want(s.post(large), 413, "larger than 1 MiB")
	// Without a Content-Length it shows only while reading.
	req, err := nethttp.NewRequest("POST", "http://"+s.source.Addr()+"/", io.MultiReader(strings.NewReader(large)))
	if err != nil {
		t.Fatal(err)
	}
	s.want(s.do(req), 413, "larger than 1 MiB")
	s.wantEmpty()
	s.wantStored(s.post(`{"a":"`+strings.Repeat("x", 1<<20-8)+`"}`), 1, 0)
}

func TestMoreElementsThanTheLimitAre413(t *testing.T) {
	t.Parallel()
	s := serve(t, ", max_elements: 3")
	s.want(s.post(`[{},{},{},{}]`), 413, "more than 3 elements")
	s.want(s.request("POST", "/", "{}\n{}\n{}\n{}\n", "Content-Type", "application/x-ndjson"), 413, "more than 3 elements")
	s.wantEmpty()
	s.wantStored(s.post(`[{},{},{}]`), 3, 0)
}

// The journal takes nothing: requests get 503 in time, and as many as are held keep
// their memory and no more.
func TestAStalledJournalAnswers503AndHoldsNoMoreThanItsSlots(t *testing.T) {
	t.Parallel()
	s := serve(t, ", timeout: 200ms, max_in_flight: 4, id_field: id")
	unblock := s.emitter.Block()
	defer unblock()
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			a := s.post(fmt.Sprintf(`{"id":"%d"}`, i))
			s.want(a, 503, "did not confirm within 200ms")
			if a.header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
	}
	clients.Wait()
	a := s.post(`{"id":"another"}`)
	s.want(a, 503, "the journal does not confirm")
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	s.wantEmpty()

	unblock()
	for i := range 4 { // what was held arrived, and the retries are duplicates
		s.eventually(func() answer { return s.post(fmt.Sprintf(`{"id":"%d"}`, i)) }, 0, 1)
	}
	if got := s.values(); len(got) != 4 {
		t.Errorf("the journal has %q, want the four that were held", got)
	}
}

// eventually repeats a request until it is answered with 200, and checks the counts.
func (s *server) eventually(request func() answer, accepted, duplicates int) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := request()
		if a.status == nethttp.StatusOK || time.Now().After(deadline) {
			s.wantStored(a, accepted, duplicates)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTooManyRequestsAtOnceAre429(t *testing.T) {
	t.Parallel()
	s := serve(t, ", timeout: 30s, max_in_flight: 1")
	unblock := s.emitter.Block()
	first := make(chan answer)
	go func() { first <- s.post(`{}`) }()
	s.awaitEmits(1)
	a := s.post(`{}`)
	s.want(a, 429, "more than 1 requests at once")
	if a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	unblock()
	s.wantStored(<-first, 1, 0)
}

func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, ", read_timeout: 100ms")
	for _, sent := range []string{"", "POST / HTTP/1.1\r\nHost: x\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"a\":"} {
		c, err := net.Dial("tcp", s.source.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); errors.Is(err, errTimeout(err)) {
			t.Errorf("after %q the connection is still open", sent)
		}
		_ = c.Close()
	}
	s.wantEmpty()
}

// errTimeout returns err if it is a time-out, else an error that nothing is.
func errTimeout(err error) error {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return err
	}
	return errors.New("none")
}

func TestABodyShorterThanAnnouncedIsNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	c, err := net.Dial("tcp", s.source.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// What arrives is a whole object: only the announced length tells that more was meant.
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{\"a\":1}"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := nethttp.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("got status %d, want 400", resp.StatusCode)
		}
	}
	s.wantEmpty()
}
