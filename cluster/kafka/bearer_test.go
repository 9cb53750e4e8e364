package kafka_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// unsecured takes tokens that nobody has signed, as Apache Kafka does where nothing is
// set: what judges tokens is not the Kafka face's business, and no server has this.
type unsecured struct{}

func (unsecured) Verify(_ context.Context, token string) (string, time.Time, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", time.Time{}, errors.New("it has no three parts")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", time.Time{}, err
	}
	var claims struct {
		Sub string
		Exp int64
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return "", time.Time{}, err
	}
	until := time.Unix(claims.Exp, 0)
	if time.Now().After(until) {
		return "", until, errors.New("the time of ann's token is over")
	}
	return claims.Sub, until, nil
}

func unsecuredToken(user string, holds time.Duration) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none"}`)) + "." + enc(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, user, time.Now().Add(holds).Unix())) + "."
}

var byToken = kafka.Access{Mechanisms: []string{kafka.MechanismOAuthBearer}, Tokens: unsecured{}}

func TestClientsLogInByToken(t *testing.T) {
	b := newBroker(t, false)
	addr := b.also(byToken)
	for name, auth := range map[string]oauth.Auth{
		"alone":           {Token: unsecuredToken("ann", time.Hour)},
		"named":           {Zid: "ann", Token: unsecuredToken("ann", time.Hour)},
		"with extensions": {Token: unsecuredToken("ann", time.Hour), Extensions: map[string]string{"traceId": "7"}},
	} {
		if err := b.at(addr, kgo.SASL(auth.AsMechanism())).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := b.server.Load().Stats().LoginsRefused
	for name, auth := range map[string]oauth.Auth{
		"expired":       {Token: unsecuredToken("ann", -time.Minute)},
		"somebody else": {Zid: "bob", Token: unsecuredToken("ann", time.Hour)},
		"no token":      {Token: "x"},
	} {
		err := b.at(addr, kgo.SASL(auth.AsMechanism())).Ping(t.Context())
		if !errors.Is(err, kerr.SaslAuthenticationFailed) || !strings.Contains(err.Error(), "invalid_token") {
			t.Errorf("%s: %v, want SASL_AUTHENTICATION_FAILED for an invalid_token", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "time of ann") {
			t.Errorf("the client hears why: %v", err)
		}
	}
	eventually(t, "counting the refused logins", func() error { // each behind its answer
		if n := b.server.Load().Stats().LoginsRefused - before; n < 3 {
			return fmt.Errorf("%d are counted, want at least 3", n)
		}
		return nil
	})
}

// A login holds as long as its token, and no longer than the listener says.
func TestALoginEndsWithItsToken(t *testing.T) {
	b := newBroker(t, false)
	short := byToken
	short.Reauthenticate = time.Minute
	for _, c := range []struct {
		access   kafka.Access
		holds    time.Duration
		from, to time.Duration
	}{
		{byToken, time.Hour, 30 * time.Minute, time.Hour},
		{short, time.Hour, time.Minute, time.Minute},
		{short, 30 * time.Second, 0, 30 * time.Second},
	} {
		conn := dialRaw(t, b.also(c.access))
		answer := conn.logIn(t, "n,,\x01auth=Bearer "+unsecuredToken("ann", c.holds)+"\x01\x01")
		if left := time.Duration(answer.SessionLifetimeMillis) * time.Millisecond; answer.ErrorCode != 0 || left <= 0 || left < c.from || left > c.to {
			t.Errorf("a token for %s: error %d, the login holds for %s", c.holds, answer.ErrorCode, left)
		}
	}
}

func TestMalformedTokenMessagesLogNobodyIn(t *testing.T) {
	b := newBroker(t, false)
	addr := b.also(byToken)
	token := unsecuredToken("ann", time.Hour)
	for _, message := range []string{
		"", "\x01", "n,,", "n,,\x01\x01", "n,,\x01auth=Bearer \x01\x01", "n,,\x01auth=Bearer " + token, "n,,\x01auth=Bearer " + token + "\x01",
		"n,,\x01auth=Basic " + token + "\x01\x01", "n,,\x01auth=" + token + "\x01\x01", "p=tls,,\x01auth=Bearer " + token + "\x01\x01",
		"n,x=ann,\x01auth=Bearer " + token + "\x01\x01", "n,a=,\x01auth=Bearer " + token + "\x01\x01", "n,,,\x01auth=Bearer " + token + "\x01\x01",
		"n,,\x01auth=Bearer " + token + "\x01auth=Bearer " + token + "\x01\x01", "n,,\x01junk\x01auth=Bearer " + token + "\x01\x01",
		"auth=Bearer " + token + "\x01\x01", strings.Repeat("\x01", 8000), "\x00ann\x00" + token,
	} {
		conn := dialRaw(t, addr)
		first := conn.logIn(t, message)
		if first.ErrorCode == 0 && string(first.SASLAuthBytes) != `{"status":"invalid_token"}` {
			t.Errorf("%.60q logs in: %q", message, first.SASLAuthBytes)
			continue
		}
		if second := conn.authenticate(t, "\x01"); second.ErrorCode != kerr.SaslAuthenticationFailed.Code {
			t.Errorf("%.60q, told off, ends with error %d", message, second.ErrorCode)
		}
	}
	// Who is told off can't try again on the same connection.
	conn := dialRaw(t, addr)
	conn.logIn(t, "n,,\x01auth=Bearer x\x01\x01")
	if again := conn.authenticate(t, "n,,\x01auth=Bearer "+token+"\x01\x01"); again.ErrorCode == 0 {
		t.Error("a second token on one connection logs in")
	}
}

// rawLogin is a connection that logs in by hand.
type rawLogin struct{ net.Conn }

func dialRaw(t *testing.T, addr string) rawLogin {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return rawLogin{c}
}

func (c rawLogin) logIn(t *testing.T, message string) *kmsg.SASLAuthenticateResponse {
	t.Helper()
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version, hello.Mechanism = 1, kafka.MechanismOAuthBearer
	if _, err := c.Write(request(hello, 1)); err != nil {
		t.Fatal(err)
	}
	readAnswer(t, c)
	return c.authenticate(t, message)
}

func (c rawLogin) authenticate(t *testing.T, message string) *kmsg.SASLAuthenticateResponse {
	t.Helper()
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.Version, req.SASLAuthBytes = 2, []byte(message)
	if _, err := c.Write(request(req, 2)); err != nil {
		t.Fatal(err)
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.Version = 2
	if err := resp.ReadFrom(readAnswer(t, c)[5:]); err != nil {
		t.Fatal(err)
	}
	return resp
}
