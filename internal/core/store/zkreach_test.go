package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// noName has an empty label, so every resolver refuses it without asking a name
// server. A lookup that a slow server leaves behind would outlive its test.
const noName = "no-such-host..invalid"

func testZKNobodyThere(t *testing.T) {
	hello := greet(1, 4000)
	for _, tc := range []struct {
		name string
		addr func(t *testing.T) string
		want string // part of the error
	}{
		{"closed port", func(t *testing.T) string {
			addr := fakeServer(t, swallow)
			return addr[:strings.LastIndexByte(addr, ':')] + ":1"
		}, "connection refused"},
		{"name that does not resolve", func(t *testing.T) string { return noName }, "host " + noName + " not found"},
		{"speaks HTTP first", func(t *testing.T) string {
			return fakeServer(t, func(c conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
		}, `not a ZooKeeper: its answer begins with "HTTP"`},
		{"hangs up", func(t *testing.T) string { return fakeServer(t, func(conn) {}) },
			"before its greeting. It has no quorum, or too many connections (maxClientCnxns), or is not a ZooKeeper"},
		{"stays silent", func(t *testing.T) string { return fakeServer(t, swallow) }, "no ZooKeeper greeting"},
		{"stops in the greeting", func(t *testing.T) string {
			return fakeServer(t, func(c conn) { _, _ = c.Write(hello[:20]); swallow(c) })
		}, "no ZooKeeper greeting"},
		{"reply shorter than its header", func(t *testing.T) string {
			return fakeServer(t, func(c conn) {
				_, _ = c.Write(append(hello[:len(hello):len(hello)], 0, 0, 0, 4, 1, 2, 3, 4))
				swallow(c)
			})
		}, "reply of 4 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			z := newZK(t, ZKConfig{
				Connect: tc.addr(t), SessionTimeout: time.Second, CallTimeout: 300 * time.Millisecond,
			})
			wantPrompt(t, z, 300*time.Millisecond, false)
			wantReason(t, z, "no connection: ", tc.want)
		})
	}
}

// wantReason waits until a call says why there is no connection.
func wantReason(t *testing.T, z *ZK, parts ...string) {
	t.Helper()
	eventually(t, 10*time.Second, func() error {
		_, _, err := z.Get(t.Context(), "/")
		if !errors.Is(err, ErrUnreachable) {
			t.Fatalf("got %v", err)
		}
		for _, want := range parts {
			if !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%q lacks %q", err, want)
			}
		}
		return nil
	})
}

// testZKLostWhileAuthenticating checks that the error says why the connection
// ended, not that the credentials got no answer on it.
func testZKLostWhileAuthenticating(t *testing.T) {
	addr := fakeServer(t, func(c conn) {
		_ = readFrame(c)
		_, _ = c.Write(greet(1, 4000))
		_ = readFrame(c) // the credentials
		_, _ = c.Write([]byte{0, 0, 0, 4, 1, 2, 3, 4})
		swallow(c)
	})
	z := newZK(t, ZKConfig{
		Connect: addr, SessionTimeout: time.Second, CallTimeout: 300 * time.Millisecond, DigestAuth: "a:b",
	})
	wantReason(t, z, "reply of 4 bytes")
}

// keeper has the clients of testZKDigest.
type keeper struct {
	*testing.T
	connect Connect
	link    *faultnet.Link
}

func (k *keeper) as(cluster, auth string, readable bool) *ZK {
	return newZK(k.T, ZKConfig{
		Connect: k.link.Addr() + k.connect.Chroot, Cluster: cluster, SessionTimeout: 4 * time.Second,
		CallTimeout: 10 * time.Second, DigestAuth: auth, WorldReadable: readable,
	})
}

// hers returns alice's client, who has made /x in the cluster.
func (k *keeper) hers(cluster string, readable bool) *ZK {
	k.Helper()
	alice := k.as(cluster, "alice:secret:with:colons", readable)
	if err := alice.EnsureRoot(k.Context()); err != nil {
		k.Fatal(err)
	}
	if _, err := alice.Create(k.Context(), "/x", []byte("hers"), Persistent); err != nil {
		k.Fatal(err)
	}
	return alice
}

func testZKDigest(t *testing.T) {
	connect, err := ParseConnect(zktest.Chroot(t, zktest.Shared(t)))
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t, connect, newLink(t, connect.Hosts[0], nil)}
	alice := k.hers("closed", false)
	k.closedToOthers()
	k.readableByOthers()
	k.authenticatesAgain(alice)
}

func (k *keeper) closedToOthers() {
	t, as := k.T, k.as
	for name, other := range map[string]*ZK{
		"another user":   as("closed", "bob:secret:with:colons", false),
		"wrong password": as("closed", "alice:guess", false),
		"nobody":         as("closed", "", false),
	} {
		for call, f := range every(other) {
			err := f(t.Context())
			if call == "sync" || call == "ensure root" {
				continue // they need no rights where there is nothing to make
			}
			if !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s of %s: got %v, want ErrDenied", call, name, err)
			}
		}
		if err := other.Multi(t.Context(), CheckOp{Path: "/x"}, SetOp{Path: "/x"}); !errors.Is(err, ErrDenied) ||
			!strings.Contains(err.Error(), "operation 0, check /x") {
			t.Errorf("multi of %s: got %v, want ErrDenied", name, err)
		}
		if err := other.EnsureRoot(t.Context()); err != nil {
			t.Errorf("%s: nothing to make, but %v", name, err)
		}
	}
	if err := as("below-hers", "", false).EnsureRoot(t.Context()); !errors.Is(err, ErrDenied) {
		t.Errorf("making a cluster below a record of another's: %v", err)
	}
}

func (k *keeper) readableByOthers() {
	t, open, reader := k.T, k.hers("readable", true), k.as("readable", "", false)
	if data, _, err := reader.Get(t.Context(), "/x"); err != nil || string(data) != "hers" {
		t.Errorf("a world-readable record: %q, %v", data, err)
	}
	if _, err := reader.Set(t.Context(), "/x", nil, AnyVersion); !errors.Is(err, ErrDenied) {
		t.Errorf("a write by others: %v", err)
	}
	if err := open.Multi(t.Context(), CreateOp{Path: "/key", Data: []byte("hers"), Secret: true}); err != nil {
		t.Fatal(err)
	}
	if data, _, err := open.Get(t.Context(), "/key"); err != nil || string(data) != "hers" {
		t.Errorf("a secret record: %q, %v", data, err)
	}
	if data, _, err := reader.Get(t.Context(), "/key"); !errors.Is(err, ErrDenied) {
		t.Errorf("a secret record of another user: %q, %v", data, err)
	}
}

// The client must authenticate again on every new connection: after a cut, and after its session has ended.
func (k *keeper) authenticatesAgain(alice *ZK) {
	t, link := k.T, k.link
	set := func() error { _, err := alice.Set(t.Context(), "/x", nil, AnyVersion); return err }
	lost := alice.Changed()
	link.Cut()
	<-lost
	link.Heal()
	eventually(t, 15*time.Second, set)
	// The next client has its own link, because all others reconnect through the old one.
	k.link = newLink(t, k.connect.Hosts[0], nil)
	last := k.as("closed", "alice:secret:with:colons", false)
	eventually(t, 10*time.Second, works(t, last))
	old := last.SessionID()
	endSession(t, k.link)
	eventually(t, 15*time.Second, func() error {
		_, err := last.Set(t.Context(), "/x", nil, AnyVersion)
		if errors.Is(err, ErrDenied) {
			t.Fatal(err)
		}
		if err == nil && last.SessionID() == old {
			err = errors.New("the session has not been replaced")
		}
		return err
	})
}

func testZKCredentialsRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		code byte // two's complement
		want string
	}{
		{"auth failed", 0x100 - 115, "client authentication failed"},
		{"SASL demanded", 0x100 - 124, "SASL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr := fakeServer(t, func(c conn) {
				_ = readFrame(c)
				_, _ = c.Write(greet(1, 4000))
				_ = readFrame(c) // the first request has xid 1
				_, _ = c.Write([]byte{0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, tc.code})
				swallow(c)
			})
			z := newZK(t, ZKConfig{
				Connect: addr, SessionTimeout: time.Second, CallTimeout: 20 * time.Second, DigestAuth: "a:b",
			})
			_, _, err := z.Get(t.Context(), "/") // long before the call's deadline
			if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want ErrDenied", err)
			}
			if z.Connected() {
				t.Error("connected")
			}
		})
	}
}

func testZKTLS(t *testing.T) {
	donor := httptest.NewTLSServer(nil) // for its certificate, of example.com and 127.0.0.1
	defer donor.Close()
	roots := x509.NewCertPool()
	roots.AddCert(donor.Certificate())
	link := newLink(t, zktest.Shared(t).Addrs()[0], &tls.Config{Certificates: donor.TLS.Certificates})
	_, port, _ := strings.Cut(link.Addr(), ":")
	for _, tc := range []struct {
		name, connect string
		tls           *tls.Config
		want          string // part of the error; "" for none
	}{
		{"by address", link.Addr(), &tls.Config{RootCAs: roots}, ""},
		{"another name in it", "localhost:" + port, &tls.Config{RootCAs: roots, ServerName: "example.com"}, ""},
		{"a name not in the certificate", "localhost:" + port, &tls.Config{RootCAs: roots}, "not localhost"},
		{"unknown authority", link.Addr(), &tls.Config{RootCAs: x509.NewCertPool()}, "unknown authority"},
		{"plain to a TLS port", link.Addr(), nil, "ZooKeeper"},
		{"TLS to a plain port", zktest.Shared(t).Addr(), &tls.Config{RootCAs: roots}, "TLS with"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := ZKConfig{
				Connect: tc.connect, SessionTimeout: 3 * time.Second, CallTimeout: 10 * time.Second, TLS: tc.tls,
			}
			if tc.want != "" {
				cfg.CallTimeout = 500 * time.Millisecond
			}
			err := newZK(t, cfg).Sync(t.Context(), "/")
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want ErrUnreachable with %q", err, tc.want)
			}
		})
	}
}

// A server that is silent, perhaps because it is overloaded, gets ever fewer attempts. Without the
// growing pauses, ten come in a third of a second.
func testZKSparesASilentServer(t *testing.T) {
	came := make(chan time.Time, 100)
	addr := fakeServer(t, func(c conn) {
		came <- time.Now()
		swallow(c)
	})
	z := newZK(t, ZKConfig{Connect: addr, SessionTimeout: time.Second})
	n, err := limits.NoticeWithin(time.Second, limits.MaxHeartbeat(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	z.SetNotice(n)
	first, tenth := <-came, time.Time{}
	for range 9 {
		tenth = <-came
	}
	if took := tenth.Sub(first); took < 3*time.Second {
		t.Errorf("ten attempts came within %s", took)
	}
}
