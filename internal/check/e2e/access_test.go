package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// These tests are about access. They do not need ZooKeeper, so their nodes run with --dev.

// guarded starts a development node, waits until it serves, and returns its address.
func guarded(t testing.TB, env []string, args ...string) (p *process, addr string) {
	t.Helper()
	args = append([]string{"serve", "--dev", "--log-format", "text", "--log-level", "trace"}, args...)
	p = launchEnv(t, env, "node", nil, forLoad().binary(t), args...)
	eventually(t, "the node serves", func() bool {
		if !p.running() {
			t.Fatalf("it ended with %d", p.exit())
		}
		if !strings.Contains(p.log(), "node: serving: ") {
			return false
		}
		m := regexp.MustCompile(`lineproto: listening: address=(\S+)`).FindStringSubmatch(p.log())
		if m != nil {
			addr = m[1]
		}
		return m != nil
	})
	return p, addr
}

// wire is a connection to a node. An error on it fails the test.
type wire struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func wireTo(t testing.TB, addr string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, callTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &wire{t, conn, bufio.NewReader(conn)}
}

func (w *wire) ask(request string) string {
	w.t.Helper()
	if _, err := io.WriteString(w, request+"\n"); err != nil {
		w.t.Fatalf("%q: %v", request, err)
	}
	line, err := w.in.ReadString('\n')
	if err != nil {
		w.t.Fatalf("%q: %q, %v", request, line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (w *wire) wants(request, pattern string) {
	w.t.Helper()
	if got := w.ask(request); !regexp.MustCompile("^(" + pattern + ")$").MatchString(got) {
		w.t.Errorf("%q: %q, want %s", request, got, pattern)
	}
}

const anID = `[1-9][0-9]*`

// pki holds two authorities, for servers and for clients, and the files of a node with TLS.
type pki struct {
	t                  testing.TB
	dir                string
	servers, customers *certtest.CA
}

func newPKI(t testing.TB) *pki {
	t.Helper()
	p := &pki{t: t, dir: t.TempDir(), servers: certtest.NewCA(t, "servers"), customers: certtest.NewCA(t, "customers")}
	pair := p.servers.Pair("node", time.Now().Add(time.Hour))
	certtest.Write(t, p.dir, "node.pem", pair.Cert)
	certtest.Write(t, p.dir, "node.key", pair.Key)
	certtest.Write(t, p.dir, "servers.pem", p.servers.PEM)
	certtest.Write(t, p.dir, "customers.pem", p.customers.PEM)
	return p
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) flags() []string {
	return []string{"--listen", "127.0.0.1:0", "--tls-cert", p.file("node.pem"), "--tls-key", p.file("node.key")}
}

func (p *pki) client() *tls.Config {
	return &tls.Config{RootCAs: p.servers.Pool(), ServerName: "localhost"}
}

// withPair writes a client's certificate and key, and returns the paths of the files.
func (p *pki) withPair(ca *certtest.CA, name string, until time.Time) (cert, key string) {
	pair := ca.Pair(name, until)
	return certtest.Write(p.t, p.dir, name+".pem", pair.Cert), certtest.Write(p.t, p.dir, name+".key", pair.Key)
}

// A token is rotated: the new one is added, clients use it, and the old one is removed. No
// token appears in the log.
func TestTokensAreRotated(t *testing.T) {
	t.Parallel()
	const first, second = "first-5a1c9e77b2d04f38", "second-0d94b6ce1f7a4e25"
	dir := t.TempDir()
	file := certtest.Write(t, dir, "tokens", []byte(first+"\n"))
	node, addr := guarded(t, nil, "--listen", "127.0.0.1:0", "--token-file", file)

	old := wireTo(t, addr)
	old.wants("PING", "-NOAUTH .*")
	old.wants("GET", "-NOAUTH .*")
	old.wants("AUTH "+second, "-WRONGPASS wrong token")
	old.wants("AUTH "+first, "OK")
	old.wants("GET", anID)
	in := func(token string) bool { return wireTo(t, addr).ask("AUTH anybody "+token) == "OK" }

	certtest.Write(t, dir, "tokens", []byte("# both\n"+first+"\n"+second+"\n"))
	eventually(t, "the second token is good", func() bool { return in(second) })
	if !in(first) {
		t.Error("the first is not good any more")
	}
	certtest.Write(t, dir, "tokens", nil)
	node.signal(syscall.SIGHUP)
	eventually(t, "the empty file is complained of", func() bool { return strings.Contains(node.log(), "no token found. Write one per line") })
	if !in(first) || !in(second) {
		t.Error("an empty file has taken tokens out")
	}
	certtest.Write(t, dir, "tokens", []byte(second+"\n"))
	node.signal(syscall.SIGHUP)
	eventually(t, "the first token is out", func() bool { return !in(first) })
	old.wants("GET", anID) // authenticated connections stay so
	if !in(second) {
		t.Error("the second is not good")
	}

	node.signal(syscall.SIGTERM)
	node.exit()
	for _, token := range []string{first, second} {
		if strings.Contains(node.log(), token) {
			t.Errorf("a token is in the log")
		}
	}
}

// In a container the token comes from the environment, for the node and for its health check.
// It appears on no command line.
func TestTokenFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"FLAKED_TOKEN=env-7c1d2f6b9e8a4035"}
	node, addr := guarded(t, env, "--listen", "127.0.0.1:0")
	wireTo(t, addr).wants("GET", "-NOAUTH .*")
	check := launchEnv(t, env, "healthcheck", nil, shipped.binary(t), "healthcheck", "--addr", addr)
	if code := check.exit(); code != 0 || check.log() != "OK\n" {
		t.Errorf("healthcheck: exit %d, %q", code, check.log())
	}
	if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", node.cmd.Process.Pid)); err == nil && strings.Contains(string(args), "env-7c1d") {
		t.Errorf("ps shows it: %q", args)
	}
	node.signal(syscall.SIGTERM)
	node.exit()
	if strings.Contains(node.log(), "7c1d2f6b9e8a4035") {
		t.Error("the token is in the log")
	}
}

var servingHTTPS = regexp.MustCompile(`admin: serving HTTPS: address=\S+:(\d+)`)

// httpsGet returns the status of a GET request on a connection of its own, to the admin port of the process.
func httpsGet(t testing.TB, p *process, config *tls.Config, path string) (code int, err error) {
	t.Helper()
	var port []string
	eventually(t, "it serves HTTPS", func() bool { port = servingHTTPS.FindStringSubmatch(p.log()); return port != nil })
	c := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	res, err := c.Get("https://127.0.0.1:" + port[1] + path)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// Probes, metrics and the page answer over TLS, to other programs too. With --tls-client-ca all
// but probes and metrics needs a client certificate.
func TestAdminPortOverTLS(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	open, _ := guarded(t, nil, append(p.flags(), "--admin", "0.0.0.0:0", "--allow-open")...)
	both, _ := guarded(t, nil, append(p.flags(), "--admin", "0.0.0.0:0", "--tls-client-ca", p.file("customers.pem"))...)
	cert, key := p.withPair(p.customers, "customer", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	customer := p.client()
	customer.Certificates = []tls.Certificate{pair}
	for _, row := range []struct {
		name   string
		at     *process
		config *tls.Config
		others int // status of paths that are not probes
	}{
		{"without client certificates", open, p.client(), 200},
		{"with client certificates, without one", both, p.client(), 403},
		{"with client certificates, with one", both, customer, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			for path, want := range map[string]int{
				"/livez": 200, "/readyz": 200, "/metrics": 200,
				"/": row.others, "/v1/status": row.others, "/v1/ids": row.others,
			} {
				if code, err := httpsGet(t, row.at, row.config, path); err != nil || code != want {
					t.Errorf("%s: %d %v, want %d", path, code, err, want)
				}
			}
		})
	}
	foreign := p.client()
	strange, strangeKey := p.withPair(p.servers, "stranger", time.Now().Add(time.Hour))
	if pair, err = tls.LoadX509KeyPair(strange, strangeKey); err != nil {
		t.Fatal(err)
	}
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	if code, err := httpsGet(t, both, foreign, "/livez"); err == nil {
		t.Errorf("a client certificate of another authority is accepted: %d", code)
	}
}
