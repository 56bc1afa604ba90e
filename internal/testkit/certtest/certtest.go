// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority for one test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the authority's certificate.
	PEM []byte
}

// NewCA makes an authority with the given common name. Its certificate is valid for a day.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	ca := &CA{t: t, key: newKey(t)}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := sign(t, template, template, ca.key, ca.key)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	ca.cert, ca.PEM = cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return ca
}

// Pool returns a pool that has only this authority.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// Pair returns a new certificate for localhost, 127.0.0.1, ::1 and other hosts, and its key. The
// certificate is for servers and clients. It is valid for 48 hours, which end at until.
func (ca *CA) Pair(name string, until time.Time, hosts ...string) Pair {
	ca.t.Helper()
	key := newKey(ca.t)
	der := sign(ca.t, &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    append([]string{"localhost"}, hosts...), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}, ca.cert, key, ca.key)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	check(ca.t, err)
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}
}

// TLS returns the pair in the form that tls.Config takes.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	check(t, err)
	return c
}

// Write replaces a file atomically by one with text, and returns the file's path. Only the
// owner can read the file.
func Write(t testing.TB, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	check(t, os.WriteFile(path+".new", text, 0o600))
	check(t, os.Rename(path+".new", path))
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	check(t, err)
	return der
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
