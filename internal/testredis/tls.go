//go:build unix

package testredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are those of an authority of the test's own, in PEM files: itself, and a pair for 127.0.0.1, localhost and
// redis.test that both servers and clients use.
type Certificates struct{ CA, Cert, Key string }

// NewCertificates makes an authority and what it signs.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir := t.TempDir()
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		}
	}
	file := func(name, kind string, der []byte, err error) string {
		if err == nil {
			name = filepath.Join(dir, name)
			err = os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}

	authority, authorityKey := template(1, "testredis authority"), key()
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	c := Certificates{CA: file("ca.pem", "CERTIFICATE", der, err)}

	leaf, leafKey := template(2, "testredis"), key()
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost", "redis.test"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err = x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, authorityKey)
	c.Cert = file("cert.pem", "CERTIFICATE", der, err)
	der, err = x509.MarshalECPrivateKey(leafKey)
	c.Key = file("key.pem", "EC PRIVATE KEY", der, err)
	return c
}

func (c Certificates) config(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// StartTLS runs a server that speaks TLS only and wants the client's certificate too. Its URL begins with rediss://.
func StartTLS(t testing.TB, c Certificates, args ...string) *Server {
	t.Helper()
	config := c.config(t)
	return start(t, setup{tls: config, args: func(string) []string {
		return append([]string{
			"--port", "0", "--tls-cert-file", c.Cert, "--tls-key-file", c.Key, "--tls-ca-cert-file", c.CA, "--tls-auth-clients", "yes",
		}, args...)
	}})
}
