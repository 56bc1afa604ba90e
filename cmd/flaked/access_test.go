package main

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

const testToken = "0123456789abcdef"

// withToken answers as a node that requires testToken.
func withToken(line string) string {
	if token, ok := strings.CutPrefix(line, "AUTH "); ok {
		if token == testToken {
			return "OK\n"
		}
		return "-WRONGPASS wrong token\n"
	}
	return getIDs(line)
}

func TestGetSendsTheToken(t *testing.T) {
	dir := t.TempDir()
	good := certtest.Write(t, dir, "good", []byte("# the new one\n"+testToken+" next=order:*\nolder\n"))
	bad, empty := certtest.Write(t, dir, "bad", []byte("other\n")), certtest.Write(t, dir, "empty", nil)
	t.Setenv("FLAKED_ADDR", fakeNode(t, "tcp", "127.0.0.1:0", withToken))
	call(t, "", "get", "--token-file", good).wants(t, exitOK, "2071483623882690560\n", "")
	call(t, "", "get", "--token-file", bad).wants(t, exitFailure, "", "answered -WRONGPASS wrong token. Give a token")
	call(t, "", "healthcheck", "--token-file", bad).wants(t, exitFailure, "", "not ready: -WRONGPASS wrong token.")
	call(t, "", "get", "--token-file", empty).wants(t, exitUsage, "", "no token found. Write one per line")
	call(t, "", "get", "--token-file", filepath.Join(dir, "none")).wants(t, exitUsage, "",
		"--token-file: file "+filepath.Join(dir, "none")+" not found. Create it or correct the path. See `flaked get "+
			"--help`.")
	config := certtest.Write(t, dir, "flaked.yaml", []byte("token-file: "+good+"\n"))
	call(t, "", "get", "--config", config).wants(t, exitOK, "2071483623882690560\n", "")
	secret := certtest.Write(t, dir, "secret.yaml", []byte("token: "+testToken+"\n"))
	call(t, "", "get", "--config", secret).wants(t, exitUsage, "", "secrets are not allowed here. Put the secret into")

	t.Setenv("FLAKED_TOKEN", testToken)
	call(t, "", "get", "2").wants(t, exitOK, "2071483623882690561\n", "")
	call(t, "", "get", "--token-file", good).wants(t, exitUsage, "", "--token-file and FLAKED_TOKEN are both given")
	t.Setenv("FLAKED_TOKEN", "a b-secret")
	if r := call(t, "", "get"); r.code != exitUsage || strings.Contains(r.stderr, "secret") {
		t.Errorf("%+v", r)
	}
}

// fakeTLSNode starts a node that answers GETs over TLS, and returns its address.
func fakeTLSNode(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	return fakeNodeOn(t, l, withToken)
}

func TestGetOverTLS(t *testing.T) {
	dir := t.TempDir()
	ca, strange := certtest.NewCA(t, "ca"), certtest.NewCA(t, "strange")
	soon := time.Now().Add(time.Hour)
	const bom = "\ufeff" // which Notepad writes
	caFile := certtest.Write(t, dir, "ca", append([]byte(bom), ca.PEM...))
	strangeFile := certtest.Write(t, dir, "strange", strange.PEM)
	client, other := ca.Pair("client", soon), strange.Pair("client", soon)
	for name, pem := range map[string][]byte{"cert": client.Cert, "key": client.Key, "other-cert": other.Cert,
		"other-key": other.Key} {
		certtest.Write(t, dir, name, append([]byte(bom), pem...))
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	server := &tls.Config{Certificates: []tls.Certificate{ca.Pair("node", soon).TLS(t)}}
	asking := server.Clone()
	asking.ClientAuth, asking.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	late := &tls.Config{Certificates: []tls.Certificate{ca.Pair("node", time.Now().Add(-time.Minute)).TLS(t)}}
	open, closed, expired := fakeTLSNode(t, server), fakeTLSNode(t, asking), fakeTLSNode(t, late)
	plain := fakeNode(t, "tcp", "127.0.0.1:0", getIDs)
	socket := fakeNode(t, "unix", file("s"), getIDs)
	_, port, _ := net.SplitHostPort(open)
	token := certtest.Write(t, dir, "token", []byte(bom+testToken))
	utf16 := certtest.Write(t, dir, "utf16", []byte("\xff\xfea\x00"))

	for _, row := range []struct {
		name string
		args []string
		code int
		err  string
	}{
		{"its authority is known", []string{"--addr", open, "--tls-ca", caFile}, exitOK, ""},
		{"with a token", []string{"--addr", open, "--tls-ca", caFile, "--token-file", token}, exitOK, ""},
		{"with a token in UTF-16", []string{"--addr", open, "--tls-ca", caFile, "--token-file", utf16}, exitUsage,
			"utf16: the text is in UTF-16. Save it as UTF-8"},
		{"by name", []string{"--addr", "localhost:" + port, "--tls-ca", caFile}, exitOK, ""},
		{"its authority is not known", []string{"--addr", open, "--tls"}, exitUnreachable,
			"Give the authority of its certificate with --tls-ca"},
		{"it has another", []string{"--addr", open, "--tls-ca", strangeFile}, exitUnreachable, "--tls-ca"},
		{"for another name", []string{"--addr", open, "--tls-ca", caFile, "--tls-server-name", "node.example"},
			exitUnreachable, "--tls-server-name"},
		{"expired", []string{"--addr", expired, "--tls-ca", caFile}, exitUnreachable,
			"The node needs another certificate"},
		{"our certificate", []string{"--addr", closed, "--tls-ca", caFile, "--tls-cert", file("cert"), "--tls-key",
			file("key")}, exitOK, ""},
		{"no certificate of ours", []string{"--addr", closed, "--tls-ca", caFile}, exitUnreachable,
			"The node requires a client certificate. Give one that it trusts with --tls-cert and --tls-key"},
		{"one that it does not trust", []string{"--addr", closed, "--tls-ca", caFile, "--tls-cert",
			file("other-cert"), "--tls-key", file("other-key")}, exitUnreachable, "Give one that it trusts"},
		{"a plain node", []string{"--addr", plain, "--tls-ca", caFile}, exitUnreachable,
			"That address does not use TLS. Leave out --tls"},
		{"a unix socket is plain", []string{"--addr", socket, "--tls-ca", caFile}, exitOK, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := ""
			if row.code == exitOK {
				out = "2071483623882690560\n"
			}
			call(t, "", append([]string{"get", "--timeout", "20s"}, row.args...)...).wants(t, row.code, out, row.err)
		})
	}
	speaksTLS := fakeNode(t, "tcp", "127.0.0.1:0", says("-ERR this port requires TLS. Connect with TLS\n"))
	call(t, "", "get", "--addr", speaksTLS).wants(t, exitFailure, "", "this port requires TLS. Connect with TLS. Give")
}

func TestGuardFlags(t *testing.T) {
	dir := t.TempDir()
	ca := certtest.NewCA(t, "ca")
	pair := ca.Pair("node", time.Now().Add(time.Hour))
	cert, key := certtest.Write(t, dir, "cert", pair.Cert), certtest.Write(t, dir, "key", pair.Key)
	empty := certtest.Write(t, dir, "empty", []byte("# none yet\n"))
	for _, row := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"--tls-cert", cert}, exitUsage, "--tls-cert and --tls-key: only one is given. Give both or neither"},
		{[]string{"--tls-client-ca", cert}, exitUsage, "--tls-client-ca needs --tls-cert"},
		{[]string{"--peer-ca", cert}, exitUsage, "--peer-ca needs --tls-cert and --tls-key"},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--peer-ca", empty}, exitUsage, "--peer-ca: " + empty +
			": no PEM certificate found"},
		{[]string{"--peer-token-file", empty}, exitUsage, "--peer-token-file: " + empty + ": no token found"},
		{[]string{"--tls-cert", cert, "--tls-key", cert}, exitUsage, cert + " and " + cert},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key}, exitUsage, key +
			": no PEM certificate found"},
		{[]string{"--token-file", empty}, exitUsage, empty + ": no token found. Write one per line, for example from"},
		{[]string{"--token-file", filepath.Join(dir, "none")}, exitUsage, "none not found. Create it or correct the"},
		{[]string{"--unix-mode", "rw-rw----"}, exitUsage, "--unix-mode: "},
		{[]string{"--unix-group", "no-such-group"}, exitUsage, "--unix-group: there is no group"},
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, "--listen 0.0.0.0:0 can be reached from other machines, so"},
	} {
		call(t, "", append([]string{"serve", "--dev", "--listen", "127.0.0.1:0"}, row.args...)...).wants(t,
			row.code, "", row.err)
	}
	t.Setenv("FLAKED_TOKEN", "bad token")
	if r := call(t, "", "serve", "--dev", "--listen", "127.0.0.1:0"); r.code != exitUsage ||
		strings.Contains(r.stderr, "bad token") || !strings.Contains(r.stderr, "FLAKED_TOKEN") {
		t.Errorf("%+v", r)
	}
}
