package node

import (
	"log/slog"
	"strings"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/tokens"
)

// ListenerOAuth is the section `oauth` of a listener: which tokens log a client in.
type ListenerOAuth struct {
	Algorithm string
	Secret    configs.Secret
	Keys      string
	Issuer    string
	Audience  string
	UserClaim string
}

// Fields declares the section.
func (o *ListenerOAuth) Fields(d *configs.Fields) {
	d.String(&o.Algorithm, "algorithm", "RS256", "How tokens must be signed, whatever they say of themselves.", configs.Enum(tokens.Algorithms()...))
	d.String(&o.Keys, "keys", "", "Public keys of the issuer of the tokens: a file with a JWKS, or with one key or certificate in PEM form, read again when it changes; or the https address of a JWKS, fetched again every 10 minutes and when a token names a new key.")
	d.Secret(&o.Secret, "secret", "What the HS algorithms sign with in place of keys, 32 bytes or more.")
	d.String(&o.Issuer, "issuer", "", "What a token must name as its issuer (iss).")
	d.String(&o.Audience, "audience", "", "What a token must name among its audience (aud).")
	d.String(&o.UserClaim, "user_claim", "sub", "The claim with the user's name.", configs.NotEmpty)
}

// Check wants all that tells the issuer's tokens from others.
func (o *ListenerOAuth) Check(at *configs.At) {
	if o.Issuer == "" {
		at.Errorf("issuer", "is missing")
	}
	if o.Audience == "" {
		at.Errorf("audience", "is missing: tokens for other services would count")
	}
	secret := o.Secret.Reveal() != ""
	switch symmetric := strings.HasPrefix(o.Algorithm, "HS"); {
	case symmetric && (!secret || o.Keys != ""):
		at.Errorf("secret", "%s signs with a `secret`, and has no `keys`", o.Algorithm)
	case !symmetric && (secret || o.Keys == ""):
		at.Errorf("keys", "%s signs with `keys`, and has no `secret`", o.Algorithm)
	}
}

// verifier opens what judges the tokens.
func (o *ListenerOAuth) verifier(log *slog.Logger) (*tokens.Verifier, error) {
	return tokens.New(tokens.Options{
		Algorithm: o.Algorithm, Secret: []byte(o.Secret.Reveal()), Keys: o.Keys,
		Issuer: o.Issuer, Audience: o.Audience, UserClaim: o.UserClaim, Log: log,
	})
}
