package main

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// withToken returns a function that answers as a node that requires a token.
func withToken() func(string) string {
	ids := counting()
	return func(line string) string {
		switch {
		case line == "AUTH 0123456789abcdef":
			return "OK\n"
		case strings.HasPrefix(line, "AUTH "):
			return "-WRONGPASS wrong token\n"
		}
		return ids(line)
	}
}

func TestAccessTranscript(t *testing.T) {
	ca, strange := certtest.NewCA(t, "ca"), certtest.NewCA(t, "strange")
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	overTLS := func(config *tls.Config) string {
		l, err := tls.Listen("tcp", "127.0.0.1:0", config)
		if err != nil {
			t.Fatal(err)
		}
		return fakeNodeOn(t, l, withToken())
	}
	server := &tls.Config{Certificates: []tls.Certificate{ca.Pair("node", soon).TLS(t)}}
	asking := server.Clone()
	asking.ClientAuth, asking.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	names := map[string]string{
		"ASKS":       fakeNode(t, "tcp", "127.0.0.1:0", withToken()),
		"TLS":        overTLS(server),
		"CLOSED":     overTLS(asking),
		"EXPIRED":    overTLS(&tls.Config{Certificates: []tls.Certificate{ca.Pair("node", past).TLS(t)}}),
		"PLAIN":      fakeNode(t, "tcp", "127.0.0.1:0", counting()),
		"SOCKET":     fakeNode(t, "unix", socketPath(t), counting()),
		"SPEAKS-TLS": fakeNode(t, "tcp", "127.0.0.1:0", says("-ERR this port requires TLS. Connect with TLS\n")),
	}
	_, port, _ := net.SplitHostPort(names["TLS"])
	names["BY-NAME"] = "localhost:" + port
	transcript(t, "access.txt", names, func(string) { // there are nodes and certificates
		client, other := ca.Pair("client", soon), strange.Pair("client", soon)
		for name, pem := range map[string][]byte{"ca": ca.PEM, "strange": strange.PEM, "cert": client.Cert,
			"key": client.Key, "other-cert": other.Cert, "other-key": other.Key} {
			certtest.Write(t, ".", name, append([]byte("\ufeff"), pem...))
		}
	})
	// The node's alert about the client's certificate may arrive before or after the end of the connection.
	for args, want := range map[string]string{"": "The node requires a client certificate. Give one that it trusts " +
		"with --tls-cert and --tls-key", " --tls-cert other-cert --tls-key other-key": "Give one that it trusts"} {
		call(t, "", strings.Fields("get --timeout 20s --addr "+names["CLOSED"]+" --tls-ca ca"+args)...).wants(t,
			exitUnreachable, "", want)
	}
}
