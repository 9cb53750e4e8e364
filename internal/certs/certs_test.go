package certs_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-data/daybook/internal/certs"
)

// write makes a certificate that is valid in a time, and the files of it and its key.
func write(t *testing.T, cert, secret string, from, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, secret: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateThatClientsWillRefuseIsWarnedOf(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, at := range map[string][2]time.Time{
		"has EXPIRED":      {now.Add(-2 * time.Hour), now.Add(-time.Hour)},
		"is not valid yet": {now.Add(time.Hour), now.Add(2 * time.Hour)},
		"":                 {now.Add(-time.Hour), now.Add(time.Hour)},
	} {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		write(t, cert, key, at[0], at[1])
		var log bytes.Buffer
		if _, err := certs.Load(cert, key, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), want) || (want == "") != (log.Len() == 0) {
			t.Errorf("valid from %s to %s: logged %q, want %q", at[0], at[1], &log, want)
		}
	}
}

func TestACertificateThatRunsOutInUseIsWarnedOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		write(t, cert, key, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		var log bytes.Buffer
		c, err := certs.Load(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{0, 1, 1, 2} { // at 0:00, 1:40, 2:30 and 3:20
			if _, err := c.Get(nil); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "has EXPIRED"); got != want {
				t.Fatalf("%d warnings, want %d:\n%s", got, want, &log)
			}
			time.Sleep(50 * time.Minute)
			if want == 0 {
				time.Sleep(50 * time.Minute)
			}
		}
	})
}
