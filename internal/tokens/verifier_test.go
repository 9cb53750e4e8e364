package tokens_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/daybook-data/daybook/internal/tokens"
)

// good are the claims of a token that counts.
func good() map[string]any {
	return map[string]any{
		"iss": "https://issuer.example", "aud": "daybook", "sub": "ann",
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
}

// with returns good claims but for one; nil takes it out.
func with(name string, value any) map[string]any {
	c := good()
	if c[name] = value; value == nil {
		delete(c, name)
	}
	return c
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// keySet is a JWKS of public keys by their ids.
func keySet(t *testing.T, keys map[string]crypto.PublicKey) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for id, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: id, Use: "sig"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func inFile(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func options(algorithm, keys string) tokens.Options {
	return tokens.Options{Algorithm: algorithm, Keys: keys, Issuer: "https://issuer.example", Audience: "daybook"}
}

func open(t *testing.T, o tokens.Options) *tokens.Verifier {
	t.Helper()
	v, err := tokens.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func checkUser(t *testing.T, v *tokens.Verifier, token, want string) {
	t.Helper()
	user, until, err := v.Verify(t.Context(), token)
	if err != nil || user != want {
		t.Errorf("a token of %s is of %q: %v", want, user, err)
	}
	if left := time.Until(until); left < 50*time.Minute || left > 61*time.Minute {
		t.Errorf("a token of an hour holds for %s", left)
	}
}

func TestTokensOfTheIssuerSayWhoTheirUserIs(t *testing.T) {
	t.Parallel()
	key := newRSA(t, 2048)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	set := keySet(t, map[string]crypto.PublicKey{"r": key.Public(), "e": curve.Public()})
	// A key of a kind that is not known does not take the others along.
	set = bytes.Replace(set, []byte(`{"keys":[`), []byte(`{"keys":[{"kty":"NEW","kid":"n"},`), 1)
	checkUser(t, open(t, options("RS256", inFile(t, set))), sign(t, jose.RS256, key, "r", good()), "ann")
	checkUser(t, open(t, options("RS256", inFile(t, set))), sign(t, jose.RS256, key, "", good()), "ann")
	checkUser(t, open(t, options("PS512", inFile(t, set))), sign(t, jose.PS512, key, "r", good()), "ann")
	checkUser(t, open(t, options("ES256", inFile(t, set))), sign(t, jose.ES256, curve, "e", good()), "ann")
	one := inFile(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	checkUser(t, open(t, options("RS256", one)), sign(t, jose.RS256, key, "any", good()), "ann")
	o := options("HS256", "")
	o.Secret, o.UserClaim = bytes.Repeat([]byte("s"), 32), "email"
	checkUser(t, open(t, o), sign(t, jose.HS256, o.Secret, "", with("email", "ann@example.com")), "ann@example.com")
	checkUser(t, open(t, options("RS256", one)), sign(t, jose.RS256, key, "", with("aud", []string{"x", "daybook"})), "ann")
	// Clocks differ a little.
	if _, _, err := open(t, options("RS256", one)).Verify(t.Context(), sign(t, jose.RS256, key, "", with("exp", time.Now().Add(-5*time.Second).Unix()))); err != nil {
		t.Errorf("a token five seconds over its time, by our clock: %v", err)
	}
}

func TestHostileTokensAreRefused(t *testing.T) {
	t.Parallel()
	key, other := newRSA(t, 2048), newRSA(t, 2048)
	set := keySet(t, map[string]crypto.PublicKey{"k": key.Public()})
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	enc := base64.RawURLEncoding.EncodeToString
	body := func(claims map[string]any) string {
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		return enc(text)
	}
	valid := sign(t, jose.RS256, key, "k", good())
	parts := strings.Split(valid, ".")
	minute := func(n int) int64 { return time.Now().Add(time.Duration(n) * time.Minute).Unix() }
	for name, token := range map[string]string{
		"no signature":               enc([]byte(`{"alg":"none"}`)) + "." + body(good()) + ".",
		"no signature, oddly spelt":  enc([]byte(`{"alg":"nOnE","kid":"k"}`)) + "." + body(good()) + ".",
		"a signature taken off":      parts[0] + "." + parts[1] + ".",
		"another's claims":           parts[0] + "." + body(with("sub", "admin")) + "." + parts[2],
		"another key":                sign(t, jose.RS256, other, "k", good()),
		"an unknown key":             sign(t, jose.RS256, other, "o", good()),
		"another algorithm":          sign(t, jose.PS256, key, "k", good()),
		"the public key as a secret": sign(t, jose.HS256, public, "k", good()),
		"the key set as a secret":    sign(t, jose.HS256, set, "k", good()),
		"expired":                    sign(t, jose.RS256, key, "k", with("exp", minute(-1))),
		"without an end":             sign(t, jose.RS256, key, "k", with("exp", nil)),
		"not yet valid":              sign(t, jose.RS256, key, "k", with("nbf", minute(5))),
		"issued tomorrow":            sign(t, jose.RS256, key, "k", with("iat", minute(1440))),
		"another audience":           sign(t, jose.RS256, key, "k", with("aud", "daybook2")),
		"no audience":                sign(t, jose.RS256, key, "k", with("aud", nil)),
		"another issuer":             sign(t, jose.RS256, key, "k", with("iss", "https://issuer.example/")),
		"no issuer":                  sign(t, jose.RS256, key, "k", with("iss", nil)),
		"no user":                    sign(t, jose.RS256, key, "k", with("sub", nil)),
		"an empty user":              sign(t, jose.RS256, key, "k", with("sub", "")),
		"a user that is no text":     sign(t, jose.RS256, key, "k", with("sub", []string{"ann"})),
		"a user of two lines":        sign(t, jose.RS256, key, "k", with("sub", "ann\nadmin")),
		"a very long user":           sign(t, jose.RS256, key, "k", with("sub", strings.Repeat("a", 300))),
		"an end that is no time":     sign(t, jose.RS256, key, "k", with("exp", "tomorrow")),
		"an endless number":          parts[0] + "." + enc([]byte(`{"exp":1e400}`)) + "." + parts[2],
		"nothing":                    "",
		"three dots":                 "...",
		"five parts":                 strings.Repeat("a.", 4) + "a",
		"JSON":                       `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`,
	} {
		for _, keys := range []string{inFile(t, set), inFile(t, public)} {
			if name == "an unknown key" && strings.HasPrefix(string(mustRead(t, keys)), "-----") {
				name = "another key, of another name"
			}
			if user, _, err := open(t, options("RS256", keys)).Verify(t.Context(), token); err == nil {
				t.Errorf("a token with %s lets %q in", name, user)
			}
		}
	}
	checkUser(t, open(t, options("RS256", inFile(t, set))), valid, "ann") // or all of it would say nothing
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSettingsThatGuardNothingAreRefused(t *testing.T) {
	t.Parallel()
	small := newRSA(t, 1024)
	private, err := x509.MarshalPKCS8PrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: bytes.Repeat([]byte("s"), 32), KeyID: "s"}}})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]tokens.Options{
		"both must be said":    {Algorithm: "RS256", Keys: "k", Issuer: "i"},
		"can be guessed":       {Algorithm: "HS256", Secret: []byte("short"), Issuer: "i", Audience: "a"},
		"no such file":         options("RS256", filepath.Join(t.TempDir(), "none")),
		"1024 bits":            options("RS256", inFile(t, keySet(t, map[string]crypto.PublicKey{"k": small.Public()}))),
		"no public key for":    options("RS256", inFile(t, text)),
		"PRIVATE KEY":          options("RS256", inFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))),
		"neither a JWKS":       options("RS256", inFile(t, []byte("hello"))),
		"it must be https":     options("RS256", "http://issuer.example/keys"),
		"no public key for ES": options("ES256", inFile(t, keySet(t, map[string]crypto.PublicKey{"k": newRSA(t, 2048).Public()}))),
	} {
		if _, err := tokens.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestKeysInAFileAreRenewed(t *testing.T) {
	t.Parallel()
	was, is := newRSA(t, 2048), newRSA(t, 2048)
	path := inFile(t, keySet(t, map[string]crypto.PublicKey{"k": was.Public()}))
	v := open(t, options("RS256", path))
	checkUser(t, v, sign(t, jose.RS256, was, "k", good()), "ann")
	write := func(text []byte, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(age)); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("half of a fi"), time.Minute)
	checkUser(t, v, sign(t, jose.RS256, was, "k", good()), "ann")
	write(keySet(t, map[string]crypto.PublicKey{"k": is.Public()}), 2*time.Minute)
	checkUser(t, v, sign(t, jose.RS256, is, "k", good()), "ann")
	if _, _, err := v.Verify(t.Context(), sign(t, jose.RS256, was, "k", good())); err == nil {
		t.Error("a key that was taken away still lets in")
	}
}

func TestKeysBehindAnAddressAreFetchedWhenNeededAndNoMore(t *testing.T) {
	t.Parallel()
	key := newRSA(t, 2048)
	set := keySet(t, map[string]crypto.PublicKey{"k": key.Public()})
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/keys":
			_, _ = w.Write(set)
		case "/elsewhere":
			http.Redirect(w, r, "/keys", http.StatusFound)
		case "/endless":
			fmt.Fprintf(w, `{"keys":[]%s}`, strings.Repeat(" ", 2<<20))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	v := open(t, options("RS256", s.URL+"/keys"))
	if asked.Load() != 0 {
		t.Error("keys were fetched before a token came")
	}
	began, unknown := time.Now(), sign(t, jose.RS256, newRSA(t, 2048), "unknown", good())
	for range 20 {
		checkUser(t, v, sign(t, jose.RS256, key, "k", good()), "ann")
		if _, _, err := v.Verify(t.Context(), unknown); err == nil {
			t.Fatal("a key that nobody has lets in")
		}
	}
	// One for the first token; then strangers can make it ask every ten seconds.
	if n, most := asked.Load(), 1+int64(time.Since(began)/(10*time.Second)); n < 1 || n > most {
		t.Errorf("keys were fetched %d times, want 1 to %d", n, most)
	}
	for _, path := range []string{"/elsewhere", "/endless", "/none"} {
		if _, _, err := open(t, options("RS256", s.URL+path)).Verify(t.Context(), sign(t, jose.RS256, key, "k", good())); err == nil {
			t.Errorf("keys from %s let in", path)
		}
	}
}
