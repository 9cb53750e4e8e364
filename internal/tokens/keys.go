package tokens

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// minRSA is how long an RSA key must be, in bits.
const minRSA = 2048

// secret is the key of both sides.
type secret []byte

func (s secret) named(context.Context, string) ([]any, error) { return []any{[]byte(s)}, nil }

// keySet is the public keys of an issuer that one algorithm can use.
type keySet []jose.JSONWebKey

// parseKeys reads a JWKS, or one key in PEM form.
func parseKeys(text []byte, algorithm string) (keySet, error) {
	var all []jose.JSONWebKey
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
		key, err := parsePEM(text)
		if err != nil {
			return nil, err
		}
		all = []jose.JSONWebKey{{Key: key}}
	} else {
		var set struct{ Keys []json.RawMessage }
		if err := json.Unmarshal(text, &set); err != nil {
			return nil, fmt.Errorf("it is neither a JWKS nor a key in PEM form: %w", err)
		}
		for _, raw := range set.Keys {
			var k jose.JSONWebKey
			if k.UnmarshalJSON(raw) == nil { // else it is of a kind that is not known (RFC 7517, 5)
				all = append(all, k)
			}
		}
	}
	var fit keySet
	for _, k := range all {
		if k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != algorithm || !fits(k.Key, algorithm) {
			continue
		}
		if r, ok := k.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSA {
			return nil, fmt.Errorf("key %q is of %d bits: RSA needs %d or more", k.KeyID, r.N.BitLen(), minRSA)
		}
		fit = append(fit, k)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("it holds no public key for %s", algorithm)
	}
	return fit, nil
}

func parsePEM(text []byte) (any, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("its PEM can't be read")
	case block.Type == "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	case block.Type != "PUBLIC KEY":
		return nil, fmt.Errorf("it holds a %s: a PUBLIC KEY or CERTIFICATE is needed", block.Type)
	}
	return x509.ParsePKIXPublicKey(block.Bytes)
}

// fits says that a key is a public one by which the algorithm can be checked.
func fits(key any, algorithm string) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		bits := map[string]int{"ES256": 256, "ES384": 384, "ES512": 521}
		return k.Curve.Params().BitSize == bits[algorithm]
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// find returns the keys of an id; without one, the only key there is.
func (s keySet) find(id string) ([]any, error) {
	if id == "" && len(s) > 1 {
		return nil, fmt.Errorf("it does not say by which of %d keys it is signed (kid)", len(s))
	}
	var found []any
	for _, k := range s {
		// A key from a PEM file has no id, so that it takes what comes.
		if id == "" || k.KeyID == id || k.KeyID == "" && len(s) == 1 {
			found = append(found, k.Key)
		}
	}
	if len(found) == 0 {
		return nil, errUnknownKey
	}
	return found, nil
}

// errUnknownKey is why a token of an unknown key is refused.
var errUnknownKey = errors.New("it is signed by a key that the issuer is not known to have (kid)")
