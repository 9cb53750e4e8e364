package http_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheSameIDIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, ", id_field: id")
	s.wantStored(s.post(`{"id":"a"}`), 1, 0)
	s.wantStored(s.post(`[{"id":"a"},{"id":"b"}]`), 1, 1)
	s.wantStored(s.post(`[{"id":"c"},{"id":"c"},{"id":"a"}]`), 1, 2)
	if diff := cmp.Diff([]string{`{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`}, s.values()); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	if got := s.journal.Records()[0].Position; got != "id:a" {
		t.Errorf("got the position %q, want id:a", got)
	}
}

func TestATextAndANumberAreTwoIDs(t *testing.T) {
	t.Parallel()
	s := serve(t, ", id_field: id")
	s.wantStored(s.post(`[{"id":1},{"id":"1"},{"id":"#1"},{"id":1.0}]`), 4, 0)
}

func TestIDsThatAreNotRightAreRefused(t *testing.T) {
	t.Parallel()
	for element, words := range map[string]string{
		`{"x":1}`:         "is missing",
		`{"id":null}`:     "is missing",
		`{"id":""}`:       "is empty",
		`{"id":{}}`:       "is an object",
		`{"id":true}`:     "is true or false",
		`{"id":"\ud83d"}`: "whole characters",
		`{"id":"` + strings.Repeat("x", 257) + `"}`:     "longer than 256",
		`{"id":"` + strings.Repeat("x", 100_000) + `"}`: "longer than 256",
	} {
		s := serve(t, ", id_field: id")
		a := s.post(`[{"id":"good"},` + element + `]`)
		s.want(a, 400, "element 1: id_field", words)
		s.wantEmpty()
	}
}

func TestTwoElementsOfOneIDMustBeEqual(t *testing.T) {
	t.Parallel()
	s := serve(t, ", id_field: id")
	s.want(s.post(`[{"id":"a","v":1},{"id":"a","v":2}]`), 400, "element 1: has the id of element 0: but is not equal")
	s.wantEmpty()
}

func TestWithoutIDFieldEachElementIsStored(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.wantStored(s.post(`[{"id":"a"},{"id":"a"}]`), 2, 0)
	s.wantStored(s.post(`{"id":"a"}`), 1, 0)
}

// A client that saw a time-out posts again while its first request still waits.
func TestARetryBesideItsFirstAttemptIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, ", id_field: id, timeout: 30s")
	unblock := s.emitter.Block()
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			if a := s.post(`{"id":"a"}`); a.status != 200 {
				t.Errorf("got %d %v, want 200", a.status, a.body)
			}
		})
	}
	s.awaitEmits(1)
	unblock()
	clients.Wait()
	if got := s.values(); len(got) != 1 {
		t.Errorf("the journal has %q, want one record", got)
	}
}

func (s *server) awaitEmits(n int) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for s.emitter.Emits() < n {
		if time.Now().After(deadline) {
			s.t.Fatal("the source does not emit")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheKeyIsTakenFromItsField(t *testing.T) {
	t.Parallel()
	s := serve(t, ", key_field: user")
	s.wantStored(s.post(`[{"user":"anna"},{"user":17},{"user":null},{}]`), 4, 0)
	var keys []string
	for _, r := range s.journal.Records() {
		keys = append(keys, fmt.Sprintf("%q %v", r.Key, r.Key == nil))
	}
	if diff := cmp.Diff([]string{`"anna" false`, `"17" false`, `"" true`, `"" true`}, keys); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
	s.want(s.post(`{"user":[1]}`), 400, `key_field "user" is an array`)
}
