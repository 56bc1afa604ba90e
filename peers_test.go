package flaked

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
)

// listening returns a listener, and its address.
func listening(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String()
}

// serves serves the line protocol of a node, for clients with the token secret.
func serves(t *testing.T, n *Node, l net.Listener) {
	t.Helper()
	cfg := lineproto.Config{Authenticate: func(token []byte) (*sequence.Rights, bool) {
		return nil, string(token) == "secret"
	}}
	cfg.Backend, cfg.Sequences = n.app().Core(), n.app().Issuer()
	server, err := lineproto.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ctx, l) })
	t.Cleanup(func() { end(); serving.Wait() })
}

// A node passes requests for an ordered sequence on to the owner, with Config.PeerAccess, and says what the owner says
// to a wrong token.
func TestNodesAskTheOwner(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	l, address := listening(t)
	owning := quick(t, zk)
	owning.Address = "unix:/run/flaked.sock," + address
	owner := opened(t, owning)
	serves(t, owner, l)
	create(t, owner, record.Ordered, "ticks")
	other, token := quick(t, zk), "wrong"
	other.PeerAccess = func() (string, *tls.Config) { return token, nil }
	n := opened(t, other)
	if v, err := owner.Sequence("ticks").Next(t.Context()); v != 1 || err != nil {
		t.Fatal(v, err)
	}
	_, err := n.try(t, "ticks")
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong token: %v", err)
	}
	token = "secret"
	for want := int64(2); want < 20; want += 2 {
		if v, err := n.Sequence("ticks").Next(t.Context()); v != want || err != nil {
			t.Errorf("passed on: %d %v, want %d", v, err, want)
		}
		if v, err := owner.Sequence("ticks").Next(t.Context()); v != want+1 || err != nil {
			t.Errorf("at the owner: %d %v, want %d", v, err, want+1)
		}
	}
}

// try asks once.
func (n *Node) try(t *testing.T, name string) (int64, error) {
	runs, err := n.app().TakeValues(t.Context(), []byte(name), 1, false, "")
	if err != nil {
		return 0, err
	}
	return int64(runs[0].First), nil
}

// The owner may have counted a value that it has not answered with. The program decides whether it asks again.
func TestUnknownOutcomeAtTheOwnerIsNotRepeated(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	l, address := listening(t)
	var asked sync.WaitGroup
	passed := 0
	asked.Go(func() { // takes one PASS on each connection, and closes it
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			for in := bufio.NewScanner(nc); in.Scan() && strings.HasPrefix(in.Text(), "WORKER "); passed++ {
				fmt.Fprintln(nc, "worker=0 cluster_uuid="+strings.Fields(in.Text())[1])
			}
			nc.Close()
		}
	})
	owning := quick(t, zk)
	owning.Address = address
	owner := opened(t, owning)
	create(t, owner, record.Ordered, "ticks")
	n := opened(t, quick(t, zk))
	if v, err := owner.Sequence("ticks").Next(t.Context()); v != 1 || err != nil {
		t.Fatal(v, err)
	}
	_, err := n.Sequence("ticks").Next(t.Context())
	e, ok := errors.AsType[*ids.ReplyError](err)
	if !ok || e.Reason() != "unknown" || !errors.Is(err, ids.ErrUnavailable) {
		t.Error(err)
	}
	l.Close()
	if asked.Wait(); passed != 1 {
		t.Errorf("%d requests", passed)
	}
}
