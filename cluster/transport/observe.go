package transport

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"time"
)

// observersAtOnce bounds the connections of observers.
const observersAtOnce = 64

// An ObserverHandler serves a connection of an observer, which is no node of the cluster, and returns when it has ended or
// ctx has. name is what the observer calls itself, for logs. The transport closes the connection then.
type ObserverHandler func(ctx context.Context, conn net.Conn, r *bufio.Reader, name string)

// Observe connects to the node at an address, or to an observer that others can observe, whose Options.Observe then has the
// other end. cluster is the id of the cluster that it has to belong to; empty is any. Of o, Dial, TLS and Timeout count. A
// *RefusedError says that it is there and does not want to.
func Observe(ctx context.Context, o Options, address, cluster, name string) (net.Conn, *bufio.Reader, error) {
	o = o.defaults()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	raw, err := o.Dial(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	conn, r, _, err := o.hail(ctx, raw, address, hello{lane: laneObserver, version: version, cluster: cluster, node: name})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, raw.Close())
	}
	return conn, r, nil
}

// serveObserver hands a connection over, if there are not too many.
func (t *Transport) serveObserver(conn net.Conn, r *bufio.Reader, h hello) {
	defer conn.Close()
	select {
	case t.watchers <- struct{}{}:
	default:
		t.stats.refused.Add(1)
		t.o.Logger.Warn("an observer was turned away: there are too many", "observer", h.node, "from", conn.RemoteAddr())
		return
	}
	defer func() { <-t.watchers }()
	t.o.Observe(t.ctx, conn, r, h.node)
}

// observes says whether an observer of a cluster may copy from another: it does not know its own yet, or it is the same one,
// of whatever generation. What is not in a later generation any more shows where the frames do not follow.
func observes(theirs, ours string) bool {
	id, _, _ := strings.Cut(ours, "#")
	return theirs == "" || theirs == id
}
