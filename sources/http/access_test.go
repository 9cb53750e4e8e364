package http_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	nethttp "net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/sources/http"
)

func TestOnlyPostToThePathIsTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, ", path: /collect")
	s.want(s.request("POST", "/", "{}"), 404, "/collect")
	s.want(s.request("POST", "/collect/x", "{}"), 404)
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		a := s.request(method, "/collect", "{}")
		s.want(a, 405, "want POST")
		if a.header.Get("Allow") != "POST" {
			t.Errorf("%s: got Allow %q, want POST", method, a.header.Get("Allow"))
		}
	}
	s.wantEmpty()
	s.wantStored(s.request("POST", "/collect?ignored=1", "{}"), 1, 0)
}

func TestTheTokenIsAskedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret: \"$1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, ", token: {file: '"+file+"'}")
	for _, header := range []string{"", "Bearer", "Bearer wrong", "Basic s3cret: \"$1\"", "s3cret: \"$1\""} {
		a := s.post("{}", "Authorization", header)
		s.want(a, 401, "Authorization: Bearer")
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("401 without WWW-Authenticate")
		}
		if strings.Contains(fmt.Sprint(a.body), "s3cret") {
			t.Errorf("the answer %v shows the token", a.body)
		}
	}
	s.wantEmpty()
	s.wantStored(s.post("{}", "Authorization", "bearer s3cret: \"$1\""), 1, 0)
}

func TestABrowserIsAnsweredForAllowedOriginsOnly(t *testing.T) {
	t.Parallel()
	s := serve(t, ", origins: ['https://shop.example']")
	ask := func(origin string) answer {
		return s.request("OPTIONS", "/", "", "Origin", origin, "Access-Control-Request-Method", "POST")
	}
	a := ask("https://shop.example")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("got %d and %v, want 204 and the origin", a.status, a.header)
	}
	if a := ask("https://evil.example"); a.status != 405 || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("got %d and %v for another origin", a.status, a.header)
	}
	a = s.post("{}", "Origin", "https://shop.example")
	s.wantStored(a, 1, 0)
	if a.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Error("the page can't read the answer")
	}
}

func TestHTTPSTakesANewCertificateWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := writeCertificate(t, dir, 1)
	s := serve(t, fmt.Sprintf(", tls: {cert: '%s/cert.pem', key: '%s/key.pem'}", dir, dir))
	s.scheme = "https"
	use := func(root *x509.Certificate) {
		pool := x509.NewCertPool()
		pool.AddCert(root)
		s.client.CloseIdleConnections()
		s.client = &nethttp.Client{Transport: &nethttp.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	}
	use(first)
	s.wantStored(s.post("{}"), 1, 0)
	// A renewal in progress: the certificate is new, its key not yet there.
	second := writeCertificate(t, dir, 2)
	key, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "key.pem")); err != nil {
		t.Fatal(err)
	}
	s.client.CloseIdleConnections()
	s.wantStored(s.post("{}"), 1, 0)
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	use(second)
	s.wantStored(s.post("{}"), 1, 0)
}

// writeCertificate writes a certificate for 127.0.0.1 whose file is serial hours old.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cert.pem")
	for file, block := range map[string]*pem.Block{
		path:                          {Type: "CERTIFICATE", Bytes: der},
		filepath.Join(dir, "key.pem"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stamp := time.Now().Add(-time.Duration(serial) * time.Hour)
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestConfigurationsThatContradictThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	for section, want := range map[string]string{
		"{}": `the field "listen" is missing`,
		"{listen: '127.0.0.1:0', dedupe_window: 1h}":                   "needs `id_field`",
		"{listen: '127.0.0.1:0', time_unit: ms}":                       "needs `time_field`",
		"{listen: '127.0.0.1:0', time_field: t, time_zone: Mars/Base}": "not a known zone",
		"{listen: '127.0.0.1:0', tls: {cert: c.pem}}":                  "come together",
		"{listen: '127.0.0.1:0', path: collect}":                       "begins with /",
		"{listen: '127.0.0.1:0', token: plain}":                        "does not stand in the file",
		"{listen: '127.0.0.1:0', token: {file: /dev/null}}":            "is empty: anybody could append",
	} {
		var c http.Config
		err := configs.Decode("t.yaml", []byte(section), &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that says %q", section, err, want)
		}
	}
}
