package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// peer is a worker in a consumer group, as the journal tells it.
type peer struct {
	member string
	client string
	host   string
	parts  []Partition
}

// A worker's client id begins with one of these, then has its machine and process.
const (
	clientLasting = "daybook.run."
	clientOnce    = "daybook.once."
)

// peerID is what this process calls itself where others look who does what.
func peerID(once bool) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	role := clientLasting
	if once {
		role = clientOnce
	}
	return fmt.Sprintf("%s%s.%d", role, host, os.Getpid())
}

// once reports whether the worker ends by itself.
func (p *peer) once() bool { return strings.HasPrefix(p.client, clientOnce) }

// String names the worker for whoever has to find it.
func (p *peer) String() string {
	name := strings.TrimPrefix(p.client, clientLasting)
	if p.once() {
		name = strings.TrimPrefix(p.client, clientOnce)
	}
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot] + ", process " + name[dot+1:]
	}
	if p.once() {
		name += " (--once)"
	}
	return "worker " + name + " at " + p.host
}

// lasting returns those that go on until they are stopped.
func lasting(peers []peer) (out []peer) {
	for _, p := range peers {
		if !p.once() {
			out = append(out, p)
		}
	}
	return out
}

// named lists workers in words.
func named(peers []peer) string {
	var names []string
	for i := range peers {
		names = append(names, peers[i].String())
	}
	return strings.Join(names, "; ")
}

// peers returns the workers of a group, but for the given member.
func (j *Journal) peers(ctx context.Context, group, but string) ([]peer, error) {
	described, err := j.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = described[group].Err
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking who is in group %s: %w", group, err)
	}
	var out []peer
	for i := range described[group].Members {
		m := &described[group].Members[i]
		if m.MemberID == but {
			continue
		}
		p := peer{member: m.MemberID, client: m.ClientID, host: strings.TrimPrefix(m.ClientHost, "/")}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				for _, n := range t.Partitions {
					p.parts = append(p.parts, Partition{Stream: t.Topic, Number: n})
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}
