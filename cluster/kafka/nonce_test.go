package kafka_test

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// scramClient logs in by SCRAM-SHA-512. With repeat it puts its nonce before the server's once more, as librdkafka did.
type scramClient struct {
	user, password string
	repeat         bool
}

const clientNonce = "fyko+d2lbbFgONRv9qkxdawL"

func (scramClient) Name() string { return kafka.MechanismScramSHA512 }

func (c scramClient) Authenticate(context.Context, string) (sasl.Session, []byte, error) {
	return c, []byte("n,," + c.first()), nil
}

func (c scramClient) first() string { return "n=" + c.user + ",r=" + clientNonce }

func (c scramClient) Challenge(server []byte) (done bool, answer []byte, err error) {
	if strings.HasPrefix(string(server), "v=") {
		return true, nil, nil
	}
	parts := strings.SplitN(string(server), ",", 3)
	if len(parts) != 3 {
		return false, nil, fmt.Errorf("the server said %q", server)
	}
	var iterations int
	if _, err := fmt.Sscanf(parts[2], "i=%d", &iterations); err != nil {
		return false, nil, err
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1][2:])
	if err != nil {
		return false, nil, err
	}
	salted, err := pbkdf2.Key(sha512.New, c.password, salt, iterations, sha512.Size)
	if err != nil {
		return false, nil, err
	}
	nonce := parts[0][2:]
	if c.repeat {
		nonce = clientNonce + nonce
	}
	final := "c=biws,r=" + nonce
	key := sign(salted, "Client Key")
	stored := sha512.Sum512(key)
	for i, b := range sign(stored[:], c.first()+","+string(server)+","+final) {
		key[i] ^= b
	}
	return false, []byte(final + ",p=" + base64.StdEncoding.EncodeToString(key)), nil
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha512.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// RFC 5802 wants the server's nonce back as it came; COMPATIBILITY.md says which clients do not do so.
func TestARepeatedNonceIsRefused(t *testing.T) {
	t.Parallel()
	b := newBroker(t, false)
	b.user("ann", "secret")
	addr := b.also(kafka.Access{Mechanisms: allMechanisms})
	if err := b.at(addr, kgo.SASL(scramClient{"ann", "secret", false})).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.at(addr, kgo.SASL(scramClient{"ann", "secret", true})).Ping(t.Context()); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("a nonce that stands twice: %v, want SASL_AUTHENTICATION_FAILED", err)
	}
}
