package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef-very-secret"

// A byte order mark before the tokens is skipped.
func TestTokensAreCompared(t *testing.T) {
	s, err := Load(Config{TokenFile: certtest.Write(t, t.TempDir(), "tokens",
		[]byte("\ufefffirst next=order\r\nsecond next=none\r\n"))})
	if err != nil {
		t.Fatal(err)
	}
	good := s.Authenticate()
	for token, want := range map[string]bool{"first": true, "second": true, "": false, "firs": false,
		"first ": false, "First": false, "first\nsecond": false} {
		if rights, ok := good([]byte(token)); ok != want || ok && rights.MayUse([]byte("order")) != (token == "first") {
			t.Errorf("%q: %v", token, ok)
		}
	}
	if s, err := Load(Config{}); err != nil || s.Authenticate() != nil || s.TLS() != nil {
		t.Errorf("of nothing: %+v, %v", s, err)
	}
	if s, err := Load(Config{Token: "first"}); err != nil || s.Authenticate() == nil {
		t.Errorf("of a token without a file: %v", err)
	}
}

// A signal to a node without files is logged, and the next one is received.
func TestSignalWithoutFilesIsLogged(t *testing.T) {
	log, hup := &logs{}, make(chan os.Signal)
	s, err := Load(Config{Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, hup) }()
	for range 2 {
		select {
		case hup <- syscall.SIGHUP:
		case <-done:
			t.Fatal("Run has returned")
		}
	}
	cancel()
	<-done
	if log.count("nothing to read again") == 0 {
		t.Error(log.String())
	}
}

// logs collects what a logger writes.
type logs struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Trace})
}

func (l *logs) count(what string) int { return strings.Count(l.String(), what) }

// inPlace overwrites a file. Its modification time stays the same.
func inPlace(t *testing.T, file, text string) {
	t.Helper()
	fi, err := os.Stat(file)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err == nil {
		err = os.Chtimes(file, fi.ModTime(), fi.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestInvalidTokenFileKeepsOldTokens also checks that a wrong file leaves the old tokens in use.
func TestInvalidTokenFileKeepsOldTokens(t *testing.T) {
	dir, log := t.TempDir(), &logs{}
	file := certtest.Write(t, dir, "tokens", []byte(secret+"-1\n"))
	s, err := Load(Config{TokenFile: file, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	good := s.Authenticate()
	wants := func(what string, want ...string) {
		t.Helper()
		s.refresh(false)
		for _, n := range []string{"1", "2", "3"} {
			token := secret + "-" + n
			if _, got := good([]byte(token)); got != strings.Contains(strings.Join(want, ""), n) {
				t.Errorf("%s: token %s: %v", what, n, got)
			}
		}
	}
	wants("at first", "1")
	certtest.Write(t, dir, "tokens", []byte(secret+"-1\n"+secret+"-2\n"))
	wants("both", "1", "2")
	inPlace(t, file, secret+"-3\n"+secret+"-2\n")
	wants("in place", "2", "3")
	certtest.Write(t, dir, "tokens", nil)
	wants("emptied", "2", "3")
	wants("still empty", "2", "3")
	if n := log.count("[ERROR]"); n != 1 {
		t.Errorf("%d errors for one mistake", n)
	}
	s.refresh(true)
	if n := log.count("[ERROR]"); n != 2 {
		t.Errorf("asked, it does not say that it still fails")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wants("removed", "2", "3")
	if n := log.count("[ERROR]"); n != 3 {
		t.Errorf("%d errors for two mistakes, one said again", n)
	}
	certtest.Write(t, dir, "tokens", []byte(secret+"-3\n"+secret+"-2\n"))
	wants("as it was", "2", "3")
	if log.count("match those in use again") != 1 {
		t.Error("no line that it is well again")
	}
	certtest.Write(t, dir, "tokens", []byte(secret+"-3\n"))
	wants("the last", "3")
	if log.count(secret) > 0 || log.count("secret") > 0 {
		t.Error("a token is in the log")
	}
	if t.Failed() {
		t.Log(log)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	ca := certtest.NewCA(t, "ca")
	a, b := ca.Pair("a", time.Now().Add(time.Hour)), ca.Pair("b", time.Now().Add(time.Hour))
	cert, key := certtest.Write(t, dir, "cert", a.Cert), certtest.Write(t, dir, "key", a.Key)
	other, empty := certtest.Write(t, dir, "other", b.Key), certtest.Write(t, dir, "empty", nil)
	large := certtest.Write(t, dir, "large", make([]byte, maxFile+1))
	none := filepath.Join(dir, "none")
	little, big := certtest.Write(t, dir, "little", []byte("\xff\xfea\x00")), certtest.Write(t, dir, "big",
		[]byte("\xfe\xff\x00a"))
	for _, row := range []struct {
		name, err string
		cfg       Config
	}{
		{"no certificate", "file " + none + " not found. Create it or correct the path", Config{Cert: none, Key: key}},
		{"of another", "does not match", Config{Cert: cert, Key: other}},
		{"the other way round", "PEM", Config{Cert: key, Key: cert}},
		{"no authorities", "empty: no PEM certificate found", Config{Cert: cert, Key: key, ClientCA: empty}},
		{"no tokens", "empty: no token found", Config{TokenFile: empty}},
		{"a directory", dir, Config{TokenFile: dir}},
		{"too large", "large: the file is larger than 1048576 bytes", Config{TokenFile: large}},
		{"UTF-16", "little: the text is in UTF-16. Save it as UTF-8", Config{TokenFile: little}},
		{"UTF-16, big end first", "big: the text is in UTF-16. Save it as UTF-8", Config{TokenFile: big}},
		{"no good token", "FLAKED_TOKEN: line 1", Config{Token: "sec ret"}},
	} {
		if _, err := Load(row.cfg); err == nil || !strings.Contains(err.Error(), row.err) ||
			strings.Contains(err.Error(), "sec ret") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// serve answers every connection with a line, under s's TLS configuration, until the test
// ends.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.TLS())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				io.WriteString(nc, "hello\n")
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// shown connects, and returns the name in the server's certificate.
func shown(addr string, config *tls.Config) (string, error) {
	nc, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadAll(nc); err != nil {
		return "", err
	}
	return nc.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// A new pair of certificate and key is used, a broken one is not. Clients are checked against
// the authorities that were last read.
func TestCertificatesReloadAndInvalidOnesAreIgnored(t *testing.T) {
	dir, log := t.TempDir(), &logs{}
	servers, old, fresh := certtest.NewCA(t, "servers"), certtest.NewCA(t, "old"), certtest.NewCA(t, "fresh")
	later := time.Now().Add(40 * time.Hour)
	one, two := servers.Pair("one", later), servers.Pair("two", later)
	hup := make(chan os.Signal)
	s, err := Load(Config{
		Cert: certtest.Write(t, dir, "cert", one.Cert), Key: certtest.Write(t, dir, "key", one.Key),
		ClientCA: certtest.Write(t, dir, "ca", old.PEM), Logger: log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, hup) }()
	defer func() { cancel(); <-done }()
	// The second signal is received only when the first has been handled.
	reload := func() { hup <- syscall.SIGHUP; hup <- syscall.SIGHUP }

	addr := serve(t, s)
	client := func(ca *certtest.CA, until time.Time) *tls.Config {
		return &tls.Config{RootCAs: servers.Pool(),
			Certificates:       []tls.Certificate{ca.Pair("client", until).TLS(t)},
			ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	}
	good := client(old, later)
	wants := func(what, name string, config *tls.Config) {
		t.Helper()
		if got, err := shown(addr, config); got != name || name != "" && err != nil {
			t.Errorf("%s: %q, %v, want %q", what, got, err, name)
		}
	}
	wants("a good client", "one", good)
	wants("one without a certificate", "", &tls.Config{RootCAs: servers.Pool()})
	wants("one of another authority", "", client(fresh, later))
	wants("one whose certificate has expired", "", client(old, time.Now().Add(-time.Minute)))

	certtest.Write(t, dir, "cert", two.Cert)
	reload()
	wants("a certificate without its key", "one", good)
	if log.count("does not match") == 0 {
		t.Error("nothing is said of the pair that is none")
	}
	certtest.Write(t, dir, "key", two.Key)
	reload()
	wants("the new pair", "two", good)
	certtest.Write(t, dir, "ca", []byte("nonsense"))
	reload()
	wants("no authorities", "two", good)
	certtest.Write(t, dir, "ca", fresh.PEM)
	reload()
	wants("authority taken out", "", good)
	wants("authority put in", "two", client(fresh, later))
	if log.count("PRIVATE") > 0 {
		t.Error("the key is in the log")
	}
}

func TestOpenFilePermissionsAreLogged(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		log, file := &logs{}, certtest.Write(t, t.TempDir(), "tokens", []byte("short\n"))
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Config{TokenFile: file, Logger: log.logger()}); err != nil {
			t.Fatal(err)
		}
		if (log.count("other users have access to this file") > 0) != warns ||
			log.count("short enough to be guessed") != 1 {
			t.Errorf("mode %o: %s", mode, log)
		}
	}
}

// A pipe can be read only once, so refresh does not read it again.
func TestPipeIsReadOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Skip(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(file, []byte(secret), 0) }()
	s, err := Load(Config{TokenFile: file})
	if err != nil || <-wrote != nil {
		t.Fatal(err)
	}
	s.refresh(false)
	if _, ok := s.Authenticate()([]byte(secret)); !ok {
		t.Error("the token is refused")
	}
}
