package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// TokenVerifier judges the tokens of clients that log in by OAUTHBEARER. It is safe for
// concurrent use.
type TokenVerifier interface {
	// Verify returns whose token it is, and until when that is so. The error is for the
	// log; the client hears no more than that the token is refused.
	Verify(ctx context.Context, token string) (user string, until time.Time, err error)
}

// bearerExchange is a login by a token that somebody else has issued (RFC 7628).
type bearerExchange struct {
	tokens  TokenVerifier
	name    string
	expires time.Time
	refused error // the client has been told so, and the login ends with its answer
}

// invalidToken tells a client why it may not log in (RFC 7628, section 3.2.2).
const invalidToken = `{"status":"invalid_token"}`

func (e *bearerExchange) step(ctx context.Context, message []byte) ([]byte, bool, error) {
	if e.refused != nil {
		return nil, false, e.refused
	}
	authz, token, err := parseBearer(message)
	if err == nil {
		e.name, e.expires, err = e.tokens.Verify(ctx, token)
	}
	if err == nil && authz != "" && authz != e.name {
		err = fmt.Errorf("a token of %q, to log in as %q", e.name, authz)
	}
	if err != nil {
		e.refused = &refusedToken{err}
		return []byte(invalidToken), false, nil
	}
	return nil, true, nil
}

func (e *bearerExchange) user() string { return e.name }

func (e *bearerExchange) until() time.Time { return e.expires }

// refusedToken is why a token is refused. Its text is for the client, the reason for the log.
type refusedToken struct{ reason error }

func (*refusedToken) Error() string { return invalidToken }

// parseBearer takes a client's first message apart: n,a=AUTHZ,^Aauth=Bearer TOKEN^A...^A^A
func parseBearer(message []byte) (authz, token string, err error) {
	header, rest, ok := bytes.Cut(message, []byte{1})
	parts := strings.Split(string(header), ",")
	if !ok || len(parts) != 3 || parts[0] != "n" && parts[0] != "y" || parts[2] != "" || !bytes.HasSuffix(rest, []byte{1, 1}) {
		return "", "", errCredentials
	}
	if parts[1] != "" {
		if authz, ok = strings.CutPrefix(parts[1], "a="); !ok || authz == "" {
			return "", "", errCredentials
		}
		// RFC 5801: what would end a name early is spelt out.
		authz = strings.NewReplacer("=2C", ",", "=3D", "=").Replace(authz)
	}
	for pair := range bytes.SplitSeq(bytes.TrimSuffix(rest, []byte{1, 1}), []byte{1}) {
		key, value, ok := strings.Cut(string(pair), "=")
		scheme, bearer, two := strings.Cut(value, " ")
		switch {
		case !ok:
			return "", "", errCredentials
		case key != "auth":
			continue // an extension: none means anything here
		case token != "" || !two || !strings.EqualFold(scheme, "bearer") || bearer == "":
			return "", "", errCredentials
		}
		token = bearer
	}
	if token == "" {
		return "", "", errCredentials
	}
	return authz, token, nil
}
