package access

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// A node takes its own first token for all sequences to other nodes, or that of a file of its own.
func TestTokenForOtherNodes(t *testing.T) {
	dir := t.TempDir()
	own := certtest.Write(t, dir, "own", []byte("limited next=order\nfirst\nsecond\n"))
	limited := certtest.Write(t, dir, "limited", []byte("limited next=order\n"))
	peers := certtest.Write(t, dir, "peers", []byte("theirs next=order\nother\n"))
	for _, row := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{TokenFile: own}, "first"},
		{Config{Token: "inline"}, "inline"},
		{Config{TokenFile: limited}, ""},
		{Config{TokenFile: own, PeerTokenFile: peers}, "theirs"},
		{Config{PeerTokenFile: peers}, "theirs"},
	} {
		s, err := Load(row.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if token, config := s.Peer(); token != row.want || config != nil {
			t.Errorf("%+v: %q, %v", row.cfg, token, config)
		}
	}
	s, err := Load(Config{TokenFile: own})
	if err != nil {
		t.Fatal(err)
	}
	certtest.Write(t, dir, "own", []byte("new\n"))
	s.refresh(false)
	if token, _ := s.Peer(); token != "new" {
		t.Errorf("after a change of the file: %q", token)
	}
}

// Nodes with certificates of one authority connect to each other, also if they ask each other for certificates.
func TestNodesConnectToEachOtherOverTLS(t *testing.T) {
	dir := t.TempDir()
	ca, strange := certtest.NewCA(t, "ca"), certtest.NewCA(t, "strange")
	pair := ca.Pair("node", time.Now().Add(time.Hour))
	cfg := Config{Cert: certtest.Write(t, dir, "cert", pair.Cert), Key: certtest.Write(t, dir, "key", pair.Key),
		ClientCA: certtest.Write(t, dir, "ca", ca.PEM), PeerCA: certtest.Write(t, dir, "peers", strange.PEM)}
	s, err := Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	connect := func() error {
		ours, theirs := net.Pipe()
		server := tls.Server(theirs, s.TLS())
		done := make(chan error, 1)
		go func() { done <- server.Handshake(); theirs.Close() }()
		_, config := s.Peer()
		config.ServerName = "localhost"
		client := tls.Client(ours, config)
		err := client.Handshake()
		if err == nil {
			_, _ = client.Read(make([]byte, 1)) // the server's verdict on our certificate
		}
		ours.Close()
		return errors.Join(err, <-done)
	}
	if err := connect(); err == nil {
		t.Error("a strange authority is trusted")
	}
	certtest.Write(t, dir, "peers", ca.PEM)
	s.refresh(false)
	if err := connect(); err != nil {
		t.Error(err)
	}
}
