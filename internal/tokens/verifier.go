// Package tokens judges the signed tokens (JWT) by which clients say who they are.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Leeway is by how much the clocks of an issuer and of this machine may differ.
const Leeway = 30 * time.Second

// minSecret is the length of a secret that can't be guessed from a token (RFC 7518, 3.2).
const minSecret = 32

// Options say which tokens count. None of the texts but UserClaim may be empty, and either
// Secret or Keys is given, as Algorithm needs.
type Options struct {
	// Algorithm is the one by which tokens must be signed, whatever they say of themselves.
	Algorithm string
	// Secret is what the HS algorithms sign with.
	Secret []byte
	// Keys are the issuer's public keys, for the other algorithms: a file with a JWKS, or
	// with one key in PEM form, or the https address of a JWKS.
	Keys string
	// Issuer and Audience are what the token must name.
	Issuer, Audience string
	// UserClaim is the claim with the user's name; empty is sub.
	UserClaim string
	// Log gets what an operator should know of the keys; nil is silence.
	Log *slog.Logger
}

// Verifier judges tokens. It is safe for concurrent use.
type Verifier struct {
	algorithm jose.SignatureAlgorithm
	keys      keySource
	expected  jwt.Expected
	claim     string
}

// keySource has the keys by which a token may be signed.
type keySource interface {
	// named returns the keys of an id; without one, the only key there is.
	named(ctx context.Context, id string) ([]any, error)
}

// Algorithms are those that tokens may be signed by.
func Algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"}
}

// New returns a verifier. It reads a file of keys; those behind an address are fetched when
// the first token comes.
func New(o Options) (*Verifier, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("tokens of any issuer or for any audience would count: both must be said")
	}
	v := &Verifier{
		algorithm: jose.SignatureAlgorithm(o.Algorithm), claim: o.UserClaim,
		expected: jwt.Expected{Issuer: o.Issuer, AnyAudience: jwt.Audience{o.Audience}},
	}
	if v.claim == "" {
		v.claim = "sub"
	}
	var err error
	v.keys, err = openKeys(o)
	return v, err
}

func openKeys(o Options) (keySource, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case symmetric(o.Algorithm) && len(o.Secret) < minSecret:
		return nil, fmt.Errorf("a secret of %d bytes can be guessed: %s needs %d or more", len(o.Secret), o.Algorithm, minSecret)
	case symmetric(o.Algorithm):
		return secret(o.Secret), nil
	case strings.Contains(o.Keys, "://"):
		return newAddress(o.Keys, o.Algorithm, o.Log)
	}
	return newFile(o.Keys, o.Algorithm, o.Log)
}

// symmetric says that an algorithm signs with a secret.
func symmetric(algorithm string) bool { return strings.HasPrefix(algorithm, "HS") }

// Verify returns whom a token is of, and until when it holds. The error says what is
// wrong with it, for the log: who sent it must not hear it.
func (v *Verifier) Verify(ctx context.Context, token string) (user string, until time.Time, err error) {
	// The algorithm is ours to choose: a token that names another, or none, is refused
	// before any key is looked at.
	t, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{v.algorithm})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("it is no token signed by %s: %w", v.algorithm, err)
	}
	keys, err := v.keys.named(ctx, t.Headers[0].KeyID)
	if err != nil {
		return "", time.Time{}, err
	}
	var claims jwt.Claims
	var all map[string]any
	err = errors.New("no key of this id")
	for _, key := range keys {
		if err = t.Claims(key, &claims, &all); err == nil {
			break
		}
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("its signature does not hold: %w", err)
	}
	if claims.Expiry == nil {
		return "", time.Time{}, errors.New("it does not say when it expires")
	}
	if err := claims.ValidateWithLeeway(v.expected, Leeway); err != nil {
		return "", time.Time{}, err
	}
	user, err = v.user(all)
	return user, claims.Expiry.Time().Add(Leeway), err
}

// user is the name that a token gives.
func (v *Verifier) user(claims map[string]any) (string, error) {
	name, _ := claims[v.claim].(string)
	if name == "" || len(name) > 255 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fmt.Errorf("its claim %s is no name of a user", v.claim)
	}
	return name, nil
}
