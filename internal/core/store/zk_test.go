package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// TestZK runs its parts in parallel, because they mostly wait for servers.
func TestZK(t *testing.T) {
	noLeaks(t) // the parts end before this test's cleanup
	for _, tc := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"FrozenServer", testZKFrozenServer},
		{"Ensemble", testZKEnsemble},
		{"DataLoss", testZKDataLoss},
		{"SilentServer", testZKSilentServer},
		{"SlowServer", testZKSlowServer},
		{"StartingServer", testZKStartingServer},
		{"SparesASilentServer", testZKSparesASilentServer},
		{"NobodyThere", testZKNobodyThere},
		{"LostWhileAuthenticating", testZKLostWhileAuthenticating},
		{"Digest", testZKDigest},
		{"CredentialsRefused", testZKCredentialsRefused},
		{"TLS", testZKTLS},
		{"Life", testZKLife},
		{"UnderFire", testZKUnderFire},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t)
		})
	}
}

// every returns one function for each call of Store.
func every(s Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"get":         func(ctx context.Context) error { _, _, err := s.Get(ctx, "/x"); return err },
		"children":    func(ctx context.Context) error { _, err := s.Children(ctx, "/"); return err },
		"create":      func(ctx context.Context) error { _, err := s.Create(ctx, "/y", nil, Persistent); return err },
		"set":         func(ctx context.Context) error { _, err := s.Set(ctx, "/x", nil, AnyVersion); return err },
		"delete":      func(ctx context.Context) error { return s.Delete(ctx, "/x", AnyVersion) },
		"multi":       func(ctx context.Context) error { return s.Multi(ctx, CheckOp{Path: "/x", Version: -1}) },
		"sync":        func(ctx context.Context) error { return s.Sync(ctx, "/") },
		"ensure root": func(ctx context.Context) error { return s.EnsureRoot(ctx, parents...) },
	}
}

// wantPrompt checks that every call fails with ErrUnreachable by deadline. The deadline is
// that of the context if own is set, and otherwise the store's CallTimeout.
func wantPrompt(t *testing.T, s Store, deadline time.Duration, own bool) {
	t.Helper()
	const slack = 700 * time.Millisecond // for a loaded machine, -race
	var wg sync.WaitGroup
	for name, f := range every(s) {
		wg.Go(func() {
			ctx := t.Context()
			if own {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline)
				defer cancel()
			}
			start := time.Now()
			err := f(ctx)
			if took := time.Since(start); took > deadline+slack {
				t.Errorf("%s took %v, the deadline was %v", name, took, deadline)
			}
			if !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: got %v, want ErrUnreachable", name, err)
			}
		})
	}
	wg.Wait()
}

func works(t *testing.T, z *ZK) func() error {
	return func() error { return z.EnsureRoot(t.Context(), parents...) }
}

func testZKFrozenServer(t *testing.T) {
	ens := zktest.Single(t)
	z := newZK(t, ZKConfig{Connect: ens.Addr(), SessionTimeout: time.Second, CallTimeout: 400 * time.Millisecond})
	eventually(t, 10*time.Second, works(t, z))

	ens.Freeze(0)
	wantPrompt(t, z, 400*time.Millisecond, false) // the session still seems fine
	wantPrompt(t, z, 100*time.Millisecond, true)
	eventually(t, 5*time.Second, func() error {
		if z.Connected() {
			return errors.New("connected to a server that says nothing")
		}
		return nil
	})
	wantPrompt(t, z, 400*time.Millisecond, false) // while it waits for a greeting
	_, _, err := z.Get(t.Context(), "/")
	if err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("%v does not say why", err)
	}
	frozen := newZK(t, ZKConfig{Connect: ens.Addr(), SessionTimeout: time.Second, CallTimeout: 400 * time.Millisecond})
	wantPrompt(t, frozen, 400*time.Millisecond, false) // never connected
	start := time.Now()
	if err := frozen.Close(); err != nil || time.Since(start) > closeBound {
		t.Errorf("Close before a greeting took %v: %v", time.Since(start), err)
	}

	ens.Thaw(0)
	eventually(t, 20*time.Second, works(t, z))

	ens.Freeze(0)
	start = time.Now()
	if err := z.Close(); err != nil || time.Since(start) > closeBound {
		t.Errorf("Close with a session took %v: %v", time.Since(start), err)
	}
}

func testZKEnsemble(t *testing.T) {
	ens := zktest.Three(t)
	z := newZK(t, ZKConfig{Connect: ens.Addr(), SessionTimeout: 8 * time.Second})
	if err := z.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Create(t.Context(), "/live/0000", nil, Ephemeral); err != nil {
		t.Fatal(err)
	}
	_, before, err := z.Get(t.Context(), "/live/0000")
	if err != nil {
		t.Fatal(err)
	}
	if before.Czxid>>32 == 0 {
		t.Errorf("zxid %#x of an ensemble has no leader epoch", before.Czxid)
	}
	leader := ens.Leader(t)
	ens.Kill(leader)
	var after Stat
	eventually(t, 15*time.Second, func() error {
		_, err := z.Set(t.Context(), "/live/0000", []byte("x"), AnyVersion)
		if err == nil {
			_, after, err = z.Get(t.Context(), "/live/0000")
		}
		return err
	})
	if after.Mzxid>>32 <= before.Mzxid>>32 {
		t.Errorf("zxid %#x after the election, %#x before", after.Mzxid, before.Mzxid)
	}

	// The killed server is back and another one is frozen. Two of three are a quorum, so
	// every client must connect, even if it tries the frozen server first.
	ens.Start(leader)
	ens.WaitServing(t)
	ens.Freeze((ens.Leader(t) + 1) % 3)
	for i := range 4 {
		other := newZK(t, ZKConfig{Connect: ens.Addr(), SessionTimeout: 3 * time.Second, CallTimeout: 5 * time.Second})
		if err := other.Sync(t.Context(), "/"); err != nil {
			t.Errorf("client %d, with one of three frozen: %v", i, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testZKDataLoss(t *testing.T) {
	ens := zktest.Single(t)
	// The session timeout must not matter.
	z := newZK(t, ZKConfig{Connect: ens.Addr(), SessionTimeout: 30 * time.Second, CallTimeout: 5 * time.Second})
	eventually(t, 10*time.Second, works(t, z))
	copied := ens.Snapshot(t)
	eventually(t, 10*time.Second, works(t, z))

	for range 5 { // moves the client beyond the zxid of a wiped server
		if _, err := z.Create(t.Context(), "/tickets/n-", nil, PersistentSequential); err != nil {
			t.Fatal(err)
		}
	}
	for _, loss := range []struct {
		name string
		do   func()
		root error // of reading the root afterwards
	}{
		{"restored", func() { ens.Restore(t, copied) }, nil},
		{"wiped", func() { ens.Wipe(t) }, ErrNoNode},
	} {
		old := z.SessionID()
		loss.do() // returns when the server serves
		_, _, err := z.Get(t.Context(), "/")
		if !errors.Is(err, loss.root) {
			t.Errorf("%s: %v", loss.name, err)
		}
		if id := z.SessionID(); id == old || id == 0 {
			t.Errorf("%s: session %#x before, %#x after", loss.name, old, id)
		}
		if err := z.EnsureRoot(t.Context(), parents...); err != nil {
			t.Fatal(err)
		}
		names, err := z.Children(t.Context(), "/tickets")
		if err != nil || len(names) != 0 {
			t.Errorf("%s: tickets %q, %v", loss.name, names, err)
		}
		if _, err := z.Create(t.Context(), "/live/"+loss.name, nil, Ephemeral); err != nil {
			t.Fatal(err)
		}
	}
}

func testZKLife(t *testing.T) {
	addr := zktest.Shared(t).Addr()

	idle, err := NewZK(ZKConfig{Connect: addr, Cluster: "x", CallTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	wantPrompt(t, idle, 100*time.Millisecond, false) // nobody runs it
	if idle.SessionID() != 0 || idle.Connected() {
		t.Error("connected without Run")
	}
	if err := idle.Close(); err != nil {
		t.Error(err)
	}
	if err := idle.Run(t.Context()); err != nil {
		t.Errorf("Run after Close: %v", err)
	}
	wantPrompt(t, idle, 0, false)

	ctx, cancel := context.WithCancel(t.Context())
	z, err := NewZK(ZKConfig{Connect: addr, Cluster: "x"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- z.Run(ctx) }()
	eventually(t, 10*time.Second, works(t, z))
	if err := z.Run(t.Context()); err == nil {
		t.Error("Run twice")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantPrompt(t, z, 0, false)

	// Close wakes calls that wait for a connection.
	link := newLink(t, zktest.Shared(t).Addrs()[0], nil)
	link.Cut()
	z = newZK(t, ZKConfig{Connect: link.Addr(), CallTimeout: time.Minute})
	waiting := make(chan error, 1)
	go func() { _, _, err := z.Get(t.Context(), "/"); waiting <- err }()
	if err := z.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

func TestZKConfig(t *testing.T) {
	good := ZKConfig{Connect: "a:1,b/x", Cluster: "prod"}
	z, err := NewZK(good)
	if err != nil {
		t.Fatal(err)
	}
	if z.Root() != "/x/flaked/prod" || z.cfg.SessionTimeout != 6*time.Second || z.cfg.CallTimeout != 3*time.Second {
		t.Errorf("root %s, %+v", z.Root(), z.cfg)
	}
	for _, tc := range []struct {
		name string
		set  func(*ZKConfig)
		want string
	}{
		{"connect", func(c *ZKConfig) { c.Connect = "" }, "connect string"},
		{"cluster missing", func(c *ZKConfig) { c.Cluster = "" }, "cluster name"},
		{"cluster goes up", func(c *ZKConfig) { c.Cluster = ".." }, "cluster name"},
		{"session too short", func(c *ZKConfig) { c.SessionTimeout = time.Millisecond }, "session timeout"},
		{"session negative", func(c *ZKConfig) { c.SessionTimeout = -time.Second }, "session timeout"},
		{"session too long", func(c *ZKConfig) { c.SessionTimeout = 25 * 24 * time.Hour }, "session timeout"},
		{"call negative", func(c *ZKConfig) { c.CallTimeout = -1 }, "call timeout"},
		{"digest without password", func(c *ZKConfig) { c.DigestAuth = "hunter2" }, "user:password"},
		{"digest without user", func(c *ZKConfig) { c.DigestAuth = ":hunter2" }, "user:password"},
	} {
		cfg := good
		tc.set(&cfg)
		_, err := NewZK(cfg)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", tc.name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error", tc.name)
		}
	}
}
