package services_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/daybook-data/daybook/internal/services"
)

func TestNATSKeepsDataThroughCrash(t *testing.T) {
	t.Parallel()
	a, b := services.NATSForTest(t, services.Options{}), services.NATSForTest(t, services.Options{Args: []string{"sync_interval: always"}})
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) {
			js := jetStream(t, addr)
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "t", Subjects: []string{"t"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "t", []byte("v")); err != nil {
				t.Fatal(err)
			}
		},
		count: func(t *testing.T, addr string) int {
			s, err := jetStream(t, addr).Stream(t.Context(), "t")
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return 0
			}
			if err != nil {
				t.Fatal(err)
			}
			return int(s.CachedInfo().State.Msgs)
		},
	}.test(t)
}

func jetStream(t *testing.T, addr string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
