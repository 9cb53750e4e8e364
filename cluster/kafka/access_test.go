package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// also opens one more listener of the broker and returns its address.
func (b *broker) also(access kafka.Access) string {
	b.t.Helper()
	l := listen(b.t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	server := b.server.Load()
	serving.Go(func() {
		if err := server.Serve(ctx, l, access); err != nil {
			b.t.Errorf("serving: %v", err)
		}
	})
	b.t.Cleanup(func() { cancel(); serving.Wait() })
	return l.Addr().String()
}

// at returns a client of one of the broker's addresses, which gives up soon.
func (b *broker) at(addr string, opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.RequestRetries(2), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.RecordRetries(5), kgo.UnknownTopicRetries(2), kgo.AllowAutoTopicCreation(),
	}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// user makes a user in the way that admin tools do.
func (b *broker) user(name, password string) {
	b.t.Helper()
	credentials, err := kafka.NewCredentials(name, password)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range credentials {
		if err := b.node.PutCredential(b.t.Context(), name, c); err != nil {
			b.t.Fatal(err)
		}
	}
}

var allMechanisms = []string{kafka.MechanismPlain, kafka.MechanismScramSHA256, kafka.MechanismScramSHA512}

func mechanisms(user, password string) map[string]sasl.Mechanism {
	return map[string]sasl.Mechanism{
		kafka.MechanismPlain:       plain.Auth{User: user, Pass: password}.AsMechanism(),
		kafka.MechanismScramSHA256: scram.Auth{User: user, Pass: password}.AsSha256Mechanism(),
		kafka.MechanismScramSHA512: scram.Auth{User: user, Pass: password}.AsSha512Mechanism(),
	}
}

func TestClientsLogInByEveryMechanism(t *testing.T) {
	b := newBroker(t, false)
	b.user("ann", "säcret, =")
	addr := b.also(kafka.Access{Mechanisms: allMechanisms})
	for name, m := range mechanisms("ann", "säcret, =") {
		if err := b.at(addr, kgo.SASL(m)).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, wrong := range [][2]string{{"ann", "other"}, {"nobody", "säcret, ="}, {"ann", "säcret, = "}} {
		for name, m := range mechanisms(wrong[0], wrong[1]) {
			if err := b.at(addr, kgo.SASL(m)).Ping(t.Context()); !errors.Is(err, kerr.SaslAuthenticationFailed) {
				t.Errorf("%s as %v: %v, want SASL_AUTHENTICATION_FAILED", name, wrong, err)
			}
		}
	}
	only := b.also(kafka.Access{Mechanisms: []string{kafka.MechanismScramSHA512}})
	if err := b.at(only, kgo.SASL(mechanisms("ann", "säcret, =")[kafka.MechanismPlain])).Ping(t.Context()); !errors.Is(err, kerr.UnsupportedSaslMechanism) {
		t.Errorf("PLAIN where it is not offered: %v, want UNSUPPORTED_SASL_MECHANISM", err)
	}
	if n := b.server.Load().Stats().LoginsRefused; n < 9 {
		t.Errorf("%d refused logins are counted, want at least 9", n)
	}
}

// Who has not logged in gets nothing, however it is asked for.
func TestNothingIsAnsweredBeforeTheLogin(t *testing.T) {
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.StallTimeout = time.Second })
	b.topic("secret-topic", 1, nil)
	b.user("ann", "secret")
	addr := b.also(kafka.Access{Mechanisms: allMechanisms})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := dial()
	if _, err := c.Write(apiVersions(3)); err != nil { // this may be asked
		t.Fatal(err)
	}
	readAnswer(t, c)
	for _, key := range []int16{0, 1, 3, 19, 22, 32, 29, 50, 51} {
		c := dial()
		req := kmsg.RequestForKey(key)
		req.SetVersion(3 * min(1, req.MaxVersion()))
		if _, err := c.Write(request(req, 1)); err != nil {
			t.Fatal(err)
		}
		closed(t, c)
	}
	// Nor does a handshake alone open the door, nor a login begun, nor tokens of garbage.
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, kafka.MechanismScramSHA256
	for _, then := range [][]byte{
		request(kmsg.NewPtrMetadataRequest(), 2),
		binaryFrame(20 << 10), // more than a stranger may send
	} {
		c := dial()
		if _, err := c.Write(append(request(handshake, 1), then...)); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
		closed(t, c)
	}
	for _, token := range []string{"", "\x00", "\x00ann\x00", "n,,n=ann", "n,,n=ann,r=x", strings.Repeat("\x00", 100), "p=tls-unique,,n=ann,r=x"} {
		for _, mechanism := range allMechanisms {
			c := dial()
			handshake.Mechanism = mechanism
			auth := kmsg.NewPtrSASLAuthenticateRequest()
			auth.Version, auth.SASLAuthBytes = 2, []byte(token)
			if _, err := c.Write(append(request(handshake, 1), request(auth, 2)...)); err != nil {
				t.Fatal(err)
			}
			readAnswer(t, c)
			resp := kmsg.NewPtrSASLAuthenticateResponse()
			resp.Version = 2
			if err := resp.ReadFrom(readAnswer(t, c)[5:]); err != nil {
				t.Fatal(err)
			}
			if begun := token == "n,,n=ann,r=x" && mechanism != kafka.MechanismPlain; begun != (resp.ErrorCode == 0) {
				t.Errorf("%s token %q: %v", mechanism, token, kerr.ErrorForCode(resp.ErrorCode))
			}
			_, _ = c.Write(request(kmsg.NewPtrMetadataRequest(), 3))
			closed(t, c)
		}
	}
}

// Strangers hold a connection, and memory, for a while only.
func TestStrangersAreCutOff(t *testing.T) {
	ca := newAuthority(t)
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.StallTimeout = 300 * time.Millisecond })
	b.user("ann", "secret")
	for name, access := range map[string]kafka.Access{
		"login": {Mechanisms: allMechanisms},
		"TLS":   {TLS: &tls.Config{Certificates: []tls.Certificate{ca.server()}}},
	} {
		addr := b.also(access)
		for what, bytes := range map[string][]byte{"nothing": nil, "half a request": apiVersions(3)[:7]} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(bytes); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: who sends %s keeps the connection", name, what)
			}
		}
	}
}

// binaryFrame is the beginning of a frame that says it has n bytes.
func binaryFrame(n int) []byte {
	return append([]byte{0, 0, byte(n >> 8), byte(n)}, make([]byte, 16)...)
}

// Version 0 of SaslHandshake sends the tokens as they are.
func TestLoginOfOldClients(t *testing.T) {
	b := newBroker(t, false)
	b.user("ann", "secret")
	addr := b.also(kafka.Access{Mechanisms: allMechanisms})
	for password, ok := range map[string]bool{"secret": true, "wrong": false} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		handshake := kmsg.NewPtrSASLHandshakeRequest()
		handshake.Mechanism = kafka.MechanismPlain
		if _, err := c.Write(request(handshake, 1)); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
		if _, err := c.Write(framed([]byte("\x00ann\x00" + password))); err != nil {
			t.Fatal(err)
		}
		if !ok {
			closed(t, c)
			continue
		}
		if answer := readAnswer(t, c); len(answer) != 0 {
			t.Errorf("the token was answered with %q", answer)
		}
		if _, err := c.Write(request(kmsg.NewPtrMetadataRequest(), 2)); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
	}
}

func TestSessionsEndAndAreRenewed(t *testing.T) {
	b := newBroker(t, false)
	b.user("ann", "secret")
	b.topic("t", 1, nil)
	addr := b.also(kafka.Access{Mechanisms: allMechanisms, Reauthenticate: 2500 * time.Millisecond})
	for name, m := range mechanisms("ann", "secret") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// kgo logs in again in time: no record fails and no connection is lost.
			var connects connectCount
			c := b.at(addr, kgo.SASL(m), kgo.RequestRetries(0), kgo.WithHooks(&connects))
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if err := c.Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := connects.Load(); n > 2 { // the seed's and the node's
				t.Errorf("the client connected %d times", n)
			}
		})
	}
	t.Run("not renewed", func(t *testing.T) {
		t.Parallel()
		c := login(t, addr, "ann", "secret")
		eventually(t, "being cut off", func() error {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			if _, err := c.Write(apiVersions(3)); err != nil {
				return nil
			}
			readAnswer(t, c) // which is answered for ever
			if _, err := c.Write(request(kmsg.NewPtrMetadataRequest(), 3)); err != nil {
				return nil
			}
			if _, err := c.Read(make([]byte, 4096)); err != nil {
				return nil
			}
			return errors.New("the connection still stands")
		})
	})
	t.Run("as somebody else", func(t *testing.T) {
		t.Parallel()
		b.user("bob", "secret")
		c := login(t, addr, "ann", "secret")
		if code := loginOn(t, c, "bob", "secret"); code != kerr.SaslAuthenticationFailed.Code {
			t.Errorf("another user on the same connection: %v", kerr.ErrorForCode(code))
		}
		closed(t, c)
	})
}

// connectCount counts a client's connections.
type connectCount struct{ atomic.Int32 }

func (c *connectCount) OnBrokerConnect(kgo.BrokerMetadata, time.Duration, net.Conn, error) { c.Add(1) }

// login opens a connection on which PLAIN has logged in.
func login(t *testing.T, addr, user, password string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if code := loginOn(t, c, user, password); code != 0 {
		t.Fatal(kerr.ErrorForCode(code))
	}
	return c
}

func loginOn(t *testing.T, c net.Conn, user, password string) int16 {
	t.Helper()
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, kafka.MechanismPlain
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.Version, auth.SASLAuthBytes = 2, []byte("\x00"+user+"\x00"+password)
	if _, err := c.Write(append(request(handshake, 1), request(auth, 2)...)); err != nil {
		t.Fatal(err)
	}
	readAnswer(t, c)
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.Version = 2
	if err := resp.ReadFrom(readAnswer(t, c)[5:]); err != nil {
		t.Fatal(err)
	}
	return resp.ErrorCode
}

func TestUsersAreMadeAndDeletedOverTheWire(t *testing.T) {
	b := newBroker(t, false)
	admin := b.admin()
	up := func(mechanism kadm.ScramMechanism, password string) kadm.UpsertSCRAM {
		return kadm.UpsertSCRAM{User: "ann", Mechanism: mechanism, Iterations: 4096, Password: password}
	}
	alter := func(del []kadm.DeleteSCRAM, ups ...kadm.UpsertSCRAM) error {
		t.Helper()
		altered, err := admin.AlterUserSCRAMs(t.Context(), del, ups)
		if err != nil {
			t.Fatal(err)
		}
		return altered["ann"].Err
	}
	if err := alter(nil, up(kadm.ScramSha256, "one"), up(kadm.ScramSha512, "one")); err != nil {
		t.Fatal(err)
	}
	addr := b.also(kafka.Access{Mechanisms: allMechanisms})
	ping := func(mechanism, password string) error {
		return b.at(addr, kgo.SASL(mechanisms("ann", password)[mechanism])).Ping(t.Context())
	}
	for _, m := range allMechanisms {
		if err := ping(m, "one"); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	b.restart() // users are in the metadata
	addr = b.also(kafka.Access{Mechanisms: allMechanisms})
	if err := alter([]kadm.DeleteSCRAM{{User: "ann", Mechanism: kadm.ScramSha512}}, up(kadm.ScramSha256, "two")); err != nil {
		t.Fatal(err)
	}
	described, err := admin.DescribeUserSCRAMs(t.Context())
	if err != nil || len(described) != 1 || len(described["ann"].CredInfos) != 1 || described["ann"].CredInfos[0].Mechanism != kadm.ScramSha256 {
		t.Errorf("described are %+v, %v; want ann's SCRAM-SHA-256", described, err)
	}
	if err := ping(kafka.MechanismPlain, "two"); err != nil { // checked with what there is
		t.Errorf("PLAIN: %v", err)
	}
	for _, m := range []string{kafka.MechanismScramSHA512, kafka.MechanismScramSHA256, kafka.MechanismPlain} {
		if err := ping(m, "one"); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("the old password by %s: %v", m, err)
		}
	}
	for _, iterations := range []int32{4095, 16385} { // which kadm would not send
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		weak := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		weak.Name, weak.Mechanism, weak.Iterations, weak.Salt, weak.SaltedPassword = "ann", 1, iterations, []byte("salt"), make([]byte, 32)
		req.Upsertions = append(req.Upsertions, weak)
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil || resp.Results[0].ErrorCode != kerr.UnacceptableCredential.Code {
			t.Errorf("%d iterations: %+v, %v, want UNACCEPTABLE_CREDENTIAL", iterations, resp, err)
		}
	}
	if err := alter([]kadm.DeleteSCRAM{{User: "ann", Mechanism: kadm.ScramSha512}}); !errors.Is(err, kerr.ResourceNotFound) {
		t.Errorf("deleting what is gone: %v, want RESOURCE_NOT_FOUND", err)
	}
}

// authority is a certificate authority of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	c := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.key = c.PrivateKey.(*ecdsa.PrivateKey)
	a.cert = c.Leaf
	a.pool.AddCert(a.cert)
	return a
}

// issue signs a certificate; the first one signs itself.
func (a *authority) issue(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) server() tls.Certificate {
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}})
}

func (a *authority) client(name string) tls.Certificate {
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"Daybook"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func TestTLSClientsAreWhoTheirCertificatesSay(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) {
		k.Authorize, k.SuperUsers = true, []string{"User:CN=ann,O=Daybook"}
	})
	addr := b.also(kafka.Access{TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.server()}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}})
	with := func(certs ...tls.Certificate) *kgo.Client {
		return b.at(addr, kgo.DialTLSConfig(&tls.Config{RootCAs: ca.pool, Certificates: certs}))
	}
	produce(t, with(ca.client("ann")), numbered("t", 10)...)
	reader := b.at(addr, kgo.DialTLSConfig(&tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.client("ann")}}), kgo.ConsumeTopics("t"))
	consume(t, reader, 10)
	if err := with(ca.client("bob")).ProduceSync(t.Context(), numbered("t", 1)...).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("bob wrote: %v, want TOPIC_AUTHORIZATION_FAILED", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for name, c := range map[string]*kgo.Client{"no certificate": with(), "a stranger's": with(other.client("ann"))} {
		if err := c.Ping(ctx); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	if err := b.at(addr).Ping(ctx); err == nil {
		t.Error("a client without TLS was let in")
	}
}
