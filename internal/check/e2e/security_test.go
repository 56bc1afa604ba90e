package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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

func wireTo(t testing.TB, network, addr string, config *tls.Config) *wire {
	t.Helper()
	conn, err := net.DialTimeout(network, addr, callTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if config != nil {
		conn = tls.Client(conn, config)
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
	p.serve("first")
	certtest.Write(t, p.dir, "servers.pem", p.servers.PEM)
	certtest.Write(t, p.dir, "customers.pem", p.customers.PEM)
	return p
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// serve writes a new certificate and key into the node's files.
func (p *pki) serve(name string) {
	pair := p.servers.Pair(name, time.Now().Add(40*time.Hour))
	certtest.Write(p.t, p.dir, "node.pem", pair.Cert)
	certtest.Write(p.t, p.dir, "node.key", pair.Key)
}

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

// openssl runs `openssl s_client`, as a TLS client that is not our own. It sends the request and
// returns everything that it receives. The request must end with QUIT.
func openssl(t *testing.T, addr, request string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"s_client", "-connect", addr, "-quiet", "-verify_return_error", "-no_ign_eof"}, args...)...)
	// s_client exits at the end of its input, possibly before the reply has arrived. So its
	// input stays open, and it exits when the server closes the connection.
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer hold.Close()
	if _, err := io.WriteString(hold, request+"\n"); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), err
}

func TestTLSByOpenSSL(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	_, open := guarded(t, nil, p.flags()...)
	_, closed := guarded(t, nil, append(p.flags(), "--tls-client-ca", p.file("customers.pem"))...)
	soon := time.Now().Add(time.Hour)
	cert, key := p.withPair(p.customers, "customer", soon)
	foreign, foreignKey := p.withPair(certtest.NewCA(t, "strangers"), "stranger", soon)
	late, lateKey := p.withPair(p.customers, "late", time.Now().Add(-time.Minute))
	trust := []string{"-CAfile", p.file("servers.pem"), "-verify_hostname", "localhost"}
	weak := []string{"-cipher", "DEFAULT:@SECLEVEL=0"} // otherwise openssl itself refuses
	for _, row := range []struct {
		name, addr string
		args       []string
		served     bool
		err        string
	}{
		{"as it comes", open, nil, true, ""},
		{"TLS 1.2", open, []string{"-tls1_2"}, true, ""},
		{"TLS 1.3", open, []string{"-tls1_3"}, true, ""},
		{"TLS 1.1", open, append(weak, "-tls1_1"), false, "alert protocol version"},
		{"TLS 1.0", open, append(weak, "-tls1"), false, "alert protocol version"},
		{"a customer", closed, []string{"-cert", cert, "-key", key}, true, ""},
		{"a customer by TLS 1.2", closed, []string{"-tls1_2", "-cert", cert, "-key", key}, true, ""},
		{"nobody", closed, nil, false, "certificate required"},
		{"nobody by TLS 1.2", closed, []string{"-tls1_2"}, false, "alert"},
		{"of another authority", closed, []string{"-cert", foreign, "-key", foreignKey}, false, "unknown ca|bad certificate"},
		{"expired", closed, []string{"-cert", late, "-key", lateKey}, false, "certificate expired|bad certificate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := openssl(t, row.addr, "GET\nPING\nQUIT", append(trust, row.args...)...)
			if row.served {
				if !regexp.MustCompile("^" + anID + "\nPONG\n$").MatchString(out) {
					t.Errorf("%q, %v", out, err)
				}
			} else if out != "" || err == nil || !regexp.MustCompile(row.err).MatchString(err.Error()) {
				t.Errorf("%q, %v; want %s", out, err, row.err)
			}
		})
	}
	// The project's own client uses the same files.
	flaked := func(addr string, args ...string) result {
		return execute(t, shipped.binary(t), append([]string{"get", "--addr", addr, "--tls-ca", p.file("servers.pem")}, args...)...)
	}
	if r := flaked(closed, "--tls-cert", cert, "--tls-key", key); r.code != 0 {
		t.Errorf("flaked get: %+v", r)
	}
	refused(t, flaked(closed), 3, `Give one that it trusts with --tls-cert and --tls-key`)
	refused(t, execute(t, shipped.binary(t), "get", "--addr", open, "--tls"), 3, `--tls-ca`)
	refused(t, execute(t, shipped.binary(t), "get", "--addr", open), 1, `this port requires TLS\. Connect with TLS\. Give --tls`)
}

// A token is rotated: the new one is added, clients use it, and the old one is removed. No
// token appears in the log.
func TestTokensAreRotated(t *testing.T) {
	t.Parallel()
	const first, second = "first-5a1c9e77b2d04f38", "second-0d94b6ce1f7a4e25"
	dir := t.TempDir()
	file := certtest.Write(t, dir, "tokens", []byte(first+"\n"))
	node, addr := guarded(t, nil, "--listen", "127.0.0.1:0", "--token-file", file)

	old := wireTo(t, "tcp", addr, nil)
	old.wants("PING", "-NOAUTH .*")
	old.wants("GET", "-NOAUTH .*")
	old.wants("AUTH "+second, "-WRONGPASS wrong token")
	old.wants("AUTH "+first, "OK")
	old.wants("GET", anID)
	in := func(token string) bool { return wireTo(t, "tcp", addr, nil).ask("AUTH anybody "+token) == "OK" }

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

	bad := wireTo(t, "tcp", addr, nil)
	bad.wants("AUTH "+first, "-WRONGPASS wrong token")
	bad.wants("AUTH "+first, "-WRONGPASS wrong token")
	bad.wants("AUTH "+first, "-WRONGPASS wrong token, connection closed. Reconnect to try again")
	if rest, err := io.ReadAll(bad.in); len(rest) > 0 || err != nil {
		t.Errorf("after the third: %q, %v", rest, err)
	}

	// Also with flaked's own commands, and with a Redis client's requests.
	get := func(args ...string) result {
		return execute(t, shipped.binary(t), append([]string{"get", "--addr", addr}, args...)...)
	}
	if r := get("--token-file", file); r.code != 0 {
		t.Errorf("flaked get: %+v", r)
	}
	refused(t, get(), 1, `-NOAUTH .*\. Give a token that the node knows, with --token-file FILE or FLAKED_TOKEN`)
	resp := wireTo(t, "tcp", addr, nil)
	resp.wants("*1\r\n$4\r\nPING\r", "-NOAUTH .*")
	resp.wants("*5\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$"+fmt.Sprint(len(second))+"\r\n"+second+"\r", `\*\d+`)

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
	wireTo(t, "tcp", addr, nil).wants("GET", "-NOAUTH .*")
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
