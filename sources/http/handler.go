package http

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	nethttp "net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handler answers requests. Its fields do not change while it serves.
type handler struct {
	config   *Config
	events   eventReader
	appender *appender
	slots    chan struct{} // one for each request that is held
	stopping <-chan struct{}
	name     func() string
	now      func() time.Time
	counts   *counters
}

// ServeHTTP takes one request from its first check to its answer.
func (h *handler) ServeHTTP(w nethttp.ResponseWriter, r *nethttp.Request) {
	h.counts.requests.Add(1)
	if h.cors(w, r) {
		return
	}
	if err := h.admit(r); err != nil {
		h.answer(w, err)
		return
	}
	select {
	case h.slots <- struct{}{}:
	default:
		h.answer(w, h.busy())
		return
	}
	b, err := h.parse(r)
	if err != nil || len(b.records) == 0 {
		<-h.slots
		h.answerStored(w, b, err)
		return
	}
	h.answerStored(w, b, h.store(r, b))
}

// admit checks what can be known before the body.
func (h *handler) admit(r *nethttp.Request) error {
	switch {
	case r.URL.Path != h.config.Path:
		return refuse(nethttp.StatusNotFound, "events are taken at %s", h.config.Path)
	case r.Method != nethttp.MethodPost:
		return refuse(nethttp.StatusMethodNotAllowed, "want POST")
	case !h.authorized(r):
		return refuse(nethttp.StatusUnauthorized, "want the header Authorization: Bearer TOKEN with the right token")
	}
	select {
	case <-h.stopping:
		return refuse(nethttp.StatusServiceUnavailable, "the source is stopping")
	default:
		return nil
	}
}

// authorized compares in constant time, and digests so that the length does not show.
func (h *handler) authorized(r *nethttp.Request) bool {
	if !h.config.Token.IsSet() {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(h.config.Token.Reveal()))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// cors answers a browser's question, or adds what lets the page read the answer.
func (h *handler) cors(w nethttp.ResponseWriter, r *nethttp.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(h.config.Origins) == 0 {
		return false
	}
	w.Header().Add("Vary", "Origin")
	if !slices.Contains(h.config.Origins, origin) && !slices.Contains(h.config.Origins, "*") {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	if r.Method != nethttp.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	w.Header().Set("Access-Control-Allow-Methods", "POST")
	w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding")
	w.Header().Set("Access-Control-Max-Age", "3600")
	w.WriteHeader(nethttp.StatusNoContent)
	return true
}

// busy says whether it is the clients or the journal that fills the slots.
func (h *handler) busy() error {
	if h.appender.stalled(h.now(), h.config.Timeout) {
		return unavailable("the journal does not confirm")
	}
	return refuse(nethttp.StatusTooManyRequests, "more than %d requests at once", h.config.MaxInFlight)
}

func unavailable(why string) *refusal {
	return refuse(nethttp.StatusServiceUnavailable, "%s: send the request again later", why)
}

// parse reads the body into records.
func (h *handler) parse(r *nethttp.Request) (*batch, error) {
	f, err := bodyForm(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	arrival := h.now()
	body, err := readBody(r, h.config.MaxBody)
	if err != nil {
		return nil, err
	}
	elements, err := decode(body, f, h.config.MaxElements)
	if err != nil {
		return nil, err
	}
	return h.events.read(elements, arrival, h.name)
}

// store waits until the records are durable. The slot goes with them: a request
// whose client was told to come again still holds its memory until the journal
// has taken it.
func (h *handler) store(r *nethttp.Request, b *batch) error {
	s := &submission{records: b.records, done: make(chan error, 1), release: func() { <-h.slots }}
	h.appender.submit(s)
	patience := time.NewTimer(h.config.Timeout)
	defer patience.Stop()
	select {
	case err := <-s.done:
		return stored(err)
	case <-h.appender.stopped:
		select {
		case err := <-s.done:
			return stored(err)
		default:
			return unavailable("the source is stopping")
		}
	case <-patience.C:
		return unavailable("the journal did not confirm within " + h.config.Timeout.String())
	case <-r.Context().Done():
		return unavailable("the client left")
	}
}

func stored(err error) error {
	if err != nil {
		return unavailable("the journal refused")
	}
	return nil
}

// answerStored answers a request that was read. The records' stamps, which belong
// to the emitter until it is done with them, are looked at only on success.
func (h *handler) answerStored(w nethttp.ResponseWriter, b *batch, err error) {
	if err != nil {
		h.answer(w, err)
		return
	}
	duplicates := b.repeated
	for i := range b.records {
		if b.records[i].Stamp == 0 {
			duplicates++ // the emitter left it out
		}
	}
	accepted := len(b.records) + b.repeated - duplicates
	h.counts.accepted.Add(int64(accepted))
	h.counts.duplicates.Add(int64(duplicates))
	h.counts.arrivals.Add(int64(b.arrivals))
	h.counts.shifted.Add(int64(b.shifted))
	writeJSON(w, nethttp.StatusOK, map[string]int{"accepted": accepted, "duplicates": duplicates})
}

// answer writes a refusal.
func (h *handler) answer(w nethttp.ResponseWriter, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		r = unavailable(err.Error())
	}
	h.counts.refused(r.status)
	body := map[string]any{"error": r.Error()}
	switch {
	case r.at.line > 0:
		body["line"] = r.at.line
	case r.at.inArray:
		body["index"] = r.at.index
	}
	switch r.status {
	case nethttp.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case nethttp.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(int(max(1, h.config.Timeout/time.Second/2))))
	case nethttp.StatusMethodNotAllowed:
		w.Header().Set("Allow", nethttp.MethodPost)
	case nethttp.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, r.status, body)
}

func writeJSON(w nethttp.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of numbers and texts always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that left can't be told anything
}
