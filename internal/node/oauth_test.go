package node_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"github.com/daybook-data/daybook/internal/shop"
)

// token signs claims by HS256, in the plainest way there is.
func token(secret, header, claims string) string {
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(header)) + "." + enc([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + enc(mac.Sum(nil))
}

func claims(user, audience string, holds time.Duration) string {
	return fmt.Sprintf(`{"iss":"https://issuer.example","aud":%q,"preferred_username":%q,"exp":%d}`, audience, user, time.Now().Add(holds).Unix())
}

func TestServerFileSaysWhichTokensLogIn(t *testing.T) {
	t.Parallel()
	const secret, header = "a secret of the issuer's and ours", `{"alg":"HS256","typ":"JWT"}`
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSecured(t, "127.0.0.1", `    sasl: [oauthbearer, scram-sha-512]
    tls: {cert: %s, key: %s}
    oauth: {algorithm: HS256, secret: {file: `+path+`}, issuer: "https://issuer.example", audience: daybook, user_claim: preferred_username}`)
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	// make makes a topic by a token.
	make := func(topic, token string) error {
		c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.RequestRetries(2),
			kgo.SASL(oauth.Auth{Token: token}.AsMechanism()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, topic)
		return err
	}
	if err := make("t", token(secret, header, claims("admin", "daybook", time.Hour))); err != nil {
		t.Errorf("admin: %v", err)
	}
	if err := make("u", token(secret, header, claims("ann", "daybook", time.Hour))); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("ann made a topic: %v", err)
	}
	unsigned := token(secret, `{"alg":"none"}`, claims("admin", "daybook", time.Hour))
	for name, token := range map[string]string{
		"expired":          token(secret, header, claims("admin", "daybook", -time.Minute)),
		"another secret":   token(strings.ToUpper(secret), header, claims("admin", "daybook", time.Hour)),
		"another audience": token(secret, header, claims("admin", "others", time.Hour)),
		"unsigned":         unsigned[:strings.LastIndexByte(unsigned, '.')+1],
	} {
		if err := make("v", token); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("a token that is %s: %v, want SASL_AUTHENTICATION_FAILED", name, err)
		}
	}
	// The connection ends a moment after its client has heard.
	err = shop.Until(t.Context(), 30*time.Second, func(context.Context) error {
		if n := s.metric(t, "daybook_kafka_logins_refused_total"); n < 4 {
			return fmt.Errorf("/metrics counts %v refused logins, want 4 or more", n)
		}
		if !strings.Contains(s.log.String(), "not logged in") {
			return errors.New("the log does not tell of the refused logins")
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v; the log:\n%s", err, s.log)
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log shows the secret")
	}
}

// metric reads a number from the server's /metrics.
func (s secured) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.http+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, name+" %g", &value); n == 1 {
			return value
		}
	}
	t.Fatalf("/metrics has no %s:\n%s", name, text)
	return 0
}
