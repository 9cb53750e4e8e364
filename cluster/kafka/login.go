package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/internal/retry"
)

const (
	// maxLoginBytes bounds the requests of a client that has not logged in.
	maxLoginBytes = 16 << 10
	// loginDelay is how long a client whose login failed waits for the end of its
	// connection: whoever guesses passwords should not guess fast.
	loginDelay = 100 * time.Millisecond
	// loginGrace is how much later than said a session ends: what was sent in time may
	// still be on its way.
	loginGrace = time.Second
)

// errLogin is the cause of a connection's end when its client could not log in, or
// had to and did not.
var errLogin = errors.New("not logged in")

// login is where a connection's client stands with logging in. It belongs to who
// answers the connection's requests.
type login struct {
	mechanism string
	exchange  exchange // nil while none is under way
	raw       bool     // tokens come without a header (SaslHandshake version 0)
	done      bool
	failed    error         // ends the connection once its answer is written
	lifetime  time.Duration // of the last login; 0 where it does not end
}

// logIn answers requests one at a time until the client has logged in. Nothing but
// a login is taken meanwhile.
func (c *conn) logIn(ctx context.Context) error {
	deadline := time.Now().Add(c.server.opts.StallTimeout)
	w := answerWriter{conn: c}
	for !c.login.done {
		_ = c.net.SetReadDeadline(deadline)
		if err := c.logInStep(ctx, &w); err != nil {
			return err
		}
		if c.login.failed != nil {
			return c.refuse(ctx)
		}
	}
	return c.net.SetReadDeadline(time.Time{})
}

func (c *conn) logInStep(ctx context.Context, w *answerWriter) error {
	var length [4]byte
	if err := c.in.small(length[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > maxLoginBytes {
		return fmt.Errorf("%w: frame of %d bytes before the login, allowed are up to %d", errFrame, size, maxLoginBytes)
	}
	if err := c.charge(ctx, int64(size)); err != nil {
		return err
	}
	defer c.discharge(int64(size))
	buf := make([]byte, size)
	if _, err := c.in.body(buf); err != nil {
		return err
	}
	if c.login.raw {
		answer, err := c.token(ctx, buf)
		if err != nil {
			return nil // refuse ends the connection, which is all that version 0 has
		}
		return errors.Join(w.bare(answer), w.flush())
	}
	h, body, err := parseHeader(buf, "")
	if err != nil {
		return err
	}
	if !mayComeFirst(h.key) {
		return fmt.Errorf("%w: request %d (%s) came first", errLogin, h.key, kmsg.NameForKey(h.key))
	}
	return errors.Join(c.answer(ctx, w, &request{header: h, body: body}), w.flush())
}

// mayComeFirst says that a client may send the request before it logs in, and once
// its login has run out.
func mayComeFirst(key int16) bool {
	return key == int16(kmsg.ApiVersions) || key == int16(kmsg.SASLHandshake) || key == int16(kmsg.SASLAuthenticate)
}

// refuse ends a connection whose login failed, after a while.
func (c *conn) refuse(ctx context.Context) error {
	c.server.counts.loginsRefused.Add(1)
	retry.Pause(ctx, loginDelay)
	return fmt.Errorf("%w: %w", errLogin, c.login.failed)
}

// expired says that the client had to log in again by now.
func (c *conn) expired() bool {
	at := c.expires.Load()
	return at != nil && time.Now().After(*at)
}

// saslHandshake begins a login, the first or another one.
func (s *Server) saslHandshake(c *call, req *kmsg.SASLHandshakeRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	resp.SupportedMechanisms = c.conn.access.Mechanisms
	l := &c.conn.login
	if len(c.conn.access.Mechanisms) == 0 {
		resp.ErrorCode = kerr.IllegalSaslState.Code
		return resp
	}
	if l.done && (l.mechanism != req.Mechanism || c.version == 0) {
		l.failed = fmt.Errorf("logged in by %s, and again by %s", l.mechanism, req.Mechanism)
		resp.ErrorCode = kerr.IllegalSaslState.Code
		return resp
	}
	var err error
	if l.exchange, err = s.newExchange(req.Mechanism, &c.conn.access); err != nil {
		l.failed = err
		resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		return resp
	}
	l.mechanism, l.raw = req.Mechanism, c.version == 0
	return resp
}

// saslAuthenticate takes a login one token further.
func (s *Server) saslAuthenticate(c *call, req *kmsg.SASLAuthenticateRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	answer, err := c.conn.token(c.ctx, req.SASLAuthBytes)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = errorCode(err), errorText(err)
		return resp
	}
	resp.SASLAuthBytes = answer
	if c.conn.login.exchange == nil { // it is done
		resp.SessionLifetimeMillis = c.conn.login.lifetime.Milliseconds()
	}
	return resp
}

// token answers one token of the login under way. An error is final.
func (c *conn) token(ctx context.Context, token []byte) ([]byte, error) {
	l := &c.login
	if len(c.access.Mechanisms) == 0 {
		return nil, kerr.IllegalSaslState // and no matter: nobody has to log in here
	}
	if l.exchange == nil {
		l.failed = kerr.IllegalSaslState
		return nil, l.failed
	}
	answer, done, err := l.exchange.step(ctx, token)
	if err == nil && done && l.done && c.who.principal != "User:"+l.exchange.user() {
		err = errors.New("logged in again as somebody else")
	}
	if err != nil {
		l.failed = err
		if refused, ok := errors.AsType[*refusedToken](err); ok {
			l.failed = refused.reason // which is not the client's to know
		}
		return nil, fmt.Errorf("%w: %w", kerr.SaslAuthenticationFailed, err)
	}
	if !done {
		return answer, nil
	}
	if !l.done { // the first time nobody else reads it yet
		c.who.principal = "User:" + l.exchange.user()
	}
	l.lifetime = c.lifetime(l.exchange.until())
	l.exchange, l.raw, l.done = nil, false, true
	if l.lifetime > 0 {
		at := time.Now().Add(l.lifetime + loginGrace)
		c.expires.Store(&at)
	}
	return answer, nil
}

// lifetime is for how long a login holds that ends at a time, if any: not longer than the
// listener says. 0 is for ever.
func (c *conn) lifetime(until time.Time) time.Duration {
	if until.IsZero() {
		return c.access.Reauthenticate
	}
	left := max(time.Until(until), time.Millisecond)
	if c.access.Reauthenticate > 0 {
		return min(left, c.access.Reauthenticate)
	}
	return left
}
