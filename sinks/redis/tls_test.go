package redis_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	addr, certificate := newTLSFront(t, server.Addr)
	config := newConfig(addr)
	config.TLS = true
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.WantWaiting(t, s, 1, "certificate")

	config.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(config.CAFile, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	wantOrders(t, client, map[int]int64{1: 1})

	config.CAFile = filepath.Join(t.TempDir(), "missing.pem")
	if _, err := config.OpenSink(sinktest.NewEnv(t)); err == nil {
		t.Error("a sink opens without its CA file")
	}
}

// newTLSFront ends TLS for a plain server, with the certificate of httptest for 127.0.0.1.
func newTLSFront(t *testing.T, target string) (addr string, certificate []byte) {
	source := httptest.NewTLSServer(nil)
	source.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: source.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", target)
			if err != nil {
				_ = front.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(back, front)
				_ = back.Close()
			}()
			go func() {
				_, _ = io.Copy(front, back)
				_ = front.Close()
			}()
		}
	}()
	return l.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw})
}
