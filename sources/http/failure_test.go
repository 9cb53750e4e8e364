package http_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/sources/sourcetest"
)

func TestAJournalThatRefusesEndsRunAndAnswers503(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*sourcetest.Emitter, error){
		"emit":  func(e *sourcetest.Emitter, err error) { e.FailEmit(0, err) },
		"flush": func(e *sourcetest.Emitter, err error) { e.FailFlush(err) },
	} {
		s := serve(t, "")
		refused := errors.New("disk full")
		fail(s.emitter, refused)
		s.want(s.post(`{}`), 503, "the journal refused")
		if err := <-s.ended; !errors.Is(err, refused) {
			t.Errorf("%s: Run returned %v, want the journal's error", name, err)
		} else {
			s.ended <- err
		}
	}
}

func TestARequestUnderWayFinishesWhenTheSourceStops(t *testing.T) {
	t.Parallel()
	s := serve(t, ", timeout: 30s")
	unblock := s.emitter.Block()
	got := make(chan answer)
	go func() { got <- s.post(`{"a":1}`) }()
	s.awaitEmits(1)
	s.cancel()
	unblock()
	a := <-got
	s.wantStored(a, 1, 0)
	wantCanceled(t, s.stop())
}

func TestAStoppingSourceNeverSaysSuccessForWhatIsNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t, ", timeout: 30s")
	unblock := s.emitter.Block()
	defer unblock()
	got := make(chan answer)
	go func() { got <- s.post(`{"a":1}`) }()
	s.awaitEmits(1)
	wantCanceled(t, s.stop())
	s.want(<-got, 503)
	s.wantEmpty()
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	other := open(t, "{listen: '"+s.source.Addr()+"'}", false)
	_, emitter := s.journal.Start(nil, other)
	err := other.Run(t.Context(), "", emitter)
	if err == nil || !strings.Contains(err.Error(), "listening for events") || !strings.Contains(err.Error(), s.source.Addr()) {
		t.Errorf("Run returned %v, want an error that names the address", err)
	}
}

func TestReportSaysWhereItListensAndWhatItRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.post(`{}`)
	s.post(`{`)
	r := s.source.Report()
	if r.Phase != "live" || !strings.Contains(r.Detail, s.source.Addr()) {
		t.Errorf("got %q, %q; want live and the address", r.Phase, r.Detail)
	}
	if r.Counters["accepted"] != 1 || r.Counters["refused_malformed"] != 1 || r.Counters["requests"] != 2 {
		t.Errorf("got the counters %v", r.Counters)
	}
	s.stop()
	if r := s.source.Report(); r.Phase != "waiting" {
		t.Errorf("after Run the phase is %q, want waiting", r.Phase)
	}
}

func TestDedupeWindowNeedsAnID(t *testing.T) {
	t.Parallel()
	if got := open(t, "{listen: '127.0.0.1:0'}", false).DedupeWindow(); got != 0 {
		t.Errorf("got the window %s without ids, want 0", got)
	}
	if got := open(t, "{listen: '127.0.0.1:0', id_field: id, dedupe_window: 5m}", false).DedupeWindow(); got != 5*time.Minute {
		t.Errorf("got the window %s, want 5m", got)
	}
}
