package kafka

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// nowhere is the address that clients inside the process are told of this node: their
// dialer needs none.
const nowhere = "in-process.invalid"

// broker is a node as clients see it.
type broker struct {
	id   int32
	host string
	port int32
	rack *string
}

// brokers returns the nodes that the client of a connection can reach, by their ids: at
// the addresses of the listener through which it came. This node is always among them,
// and none that is not heard of: clients would wait for it.
func (c *conn) brokers() []broker {
	self := c.server.node.ID()
	var all []broker
	for _, m := range c.server.node.Members() {
		b := broker{id: m.ID, rack: nonEmpty(m.Rack)}
		switch host, port, err := splitAddress(m.Listeners[c.access.Name]); {
		case m.ID == self:
			b.host, b.port = c.advertised()
		case !c.server.node.Up(m.ID):
			continue
		case err == nil:
			b.host, b.port = host, port
		default:
			c.server.leaveOut(c.access.Name, m)
			continue
		}
		all = append(all, b)
	}
	return all
}

// broker returns one of them.
func (c *conn) broker(id int32) (broker, error) {
	for _, b := range c.brokers() {
		if b.id == id {
			return b, nil
		}
	}
	return broker{id: -1, port: -1}, fmt.Errorf("%w: node %d is down, or has no address for clients of listener %q", kerr.CoordinatorNotAvailable, id, c.access.Name)
}

// leaveOut logs, once, that clients of a listener cannot reach a node. Of one that has just joined it is not known yet.
func (s *Server) leaveOut(listener string, m metadata.Member) {
	if len(m.Listeners) == 0 {
		return
	}
	s.mu.Lock()
	key := fmt.Sprint(listener, "\x00", m.ID)
	_, known := s.leftOut[key]
	s.leftOut[key] = struct{}{}
	s.mu.Unlock()
	if !known {
		s.logger.Warn("clients are not told of a node, as it has no listener of the name that they came through: give it one",
			"listener", listener, "node", m.ID, "its_listeners", m.Listeners)
	}
}

// advertised is where the client of a connection finds this node: as configured,
// else where it has found it already. A connection inside the process has no
// address; its dialer needs none.
func (c *conn) advertised() (host string, port int32) {
	address := cmp.Or(c.access.Advertised, c.server.opts.Advertised, c.net.LocalAddr().String())
	if host, port, err := splitAddress(address); err == nil {
		return host, port
	}
	return nowhere, 9092
}

func splitAddress(address string) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", address)
	}
	return host, int32(n), nil
}
