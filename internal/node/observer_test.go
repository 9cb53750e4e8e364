package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/shop"
)

// Observers of a cluster, two levels deep, of which one after the other is killed while records come: a consumer of the
// last one gets each of them once and in order, whatever it was connected to before, and sees no offset go back.
func TestConsumersOfKilledObserversGetEverythingOnceAndInOrder(t *testing.T) {
	t.Parallel()
	records, kills := 600, 3
	if long() {
		records, kills = 20_000, 20
	}
	c := startServers(t, servers.Options{Nodes: 1})
	first := startServers(t, servers.Options{Nodes: 1, Args: []string{"--observe", c.Nodes()[0].Peer}})
	second := startServers(t, servers.Options{Nodes: 1, Args: []string{"--observe", first.Nodes()[0].Peer}})
	p := clientOf(t, c, kgo.DefaultProduceTopic("t"), kgo.AllowAutoTopicCreation())
	consumer := clientOf(t, second, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(time.Second))

	var producing sync.WaitGroup
	sent := make(chan struct{}, records)
	producing.Go(func() {
		for i := range records {
			if err := p.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Errorf("record %d: %v", i, err)
				break
			}
			sent <- struct{}{}
		}
		close(sent)
	})
	got := make(chan error, 1)
	go func() { got <- inOrder(t.Context(), consumer, records) }()
	all := []*servers.Node{first.Nodes()[0], second.Nodes()[0]}
	for kill := range kills {
		for range records / (kills + 1) {
			<-sent
		}
		n := all[kill%len(all)]
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	producing.Wait()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if err := n.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := shop.Until(t.Context(), time.Minute, func(ctx context.Context) error { return withoutLag(ctx, n.HTTP, "t") })
		if err != nil {
			t.Errorf("observer at %s: %v", n.HTTP, err)
		}
	}
}

// inOrder consumes the numbers below n, each where it belongs.
func inOrder(ctx context.Context, c *kgo.Client, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for next := 0; next < n; {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("after %d of %d records: %w", next, n, err)
		}
		for _, r := range fetches.Records() {
			if string(r.Value) != fmt.Sprint(next) || r.Offset != int64(next) {
				return fmt.Errorf("got %q at offset %d, want %d", r.Value, r.Offset, next)
			}
			next++
		}
	}
	return nil
}

// withoutLag checks what an observer's metrics say of a stream.
func withoutLag(ctx context.Context, address, stream string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	for _, metric := range []string{"lag_records", "lag_bytes", "stopped_journals"} {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^daybook_observer_%s\{stream="%s"\} (.*)$`, metric, stream)).FindSubmatch(page)
		if line == nil {
			return errors.New("there is no metric " + metric)
		}
		if string(line[1]) != "0" {
			return fmt.Errorf("%s is %s", metric, line[1])
		}
	}
	return nil
}
