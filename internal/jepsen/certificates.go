//go:build linux

package jepsen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// lasting is how long certificates hold, and how long before now they began to: clocks jump by less.
const lasting = 30 * 24 * time.Hour

// certify makes an authority, and a certificate by it for each address, in files that the section cluster.tls of a
// server's file can name: ca.pem, and ADDRESS.pem and ADDRESS.key.
func certify(dir string, addresses ...netip.Addr) error {
	authority := template(1, "cluster")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := sign(filepath.Join(dir, "ca"), authority, authority, signer, signer); err != nil {
		return err
	}
	for i, a := range addresses {
		t := template(int64(i+2), a.String())
		t.IPAddresses, t.KeyUsage = []net.IP{a.AsSlice()}, x509.KeyUsageDigitalSignature
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		if err := sign(filepath.Join(dir, a.String()), t, authority, key, signer); err != nil {
			return fmt.Errorf("making a certificate for %s: %w", a, err)
		}
	}
	return nil
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-lasting), NotAfter: time.Now().Add(lasting),
	}
}

// sign makes the files of a certificate and its key.
func sign(path string, t, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(path+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(path+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600),
	)
}
