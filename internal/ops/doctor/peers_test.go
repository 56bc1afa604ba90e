package doctor

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// fakePeer answers each line with a reply, and returns its address.
func fakePeer(t *testing.T, guard *tls.Config, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	address := l.Addr().String()
	if guard != nil {
		l = tls.NewListener(l, guard)
	}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				for in := bufio.NewScanner(nc); in.Scan(); {
					fmt.Fprintln(nc, reply)
				}
			}()
		}
	}()
	return address
}

// inC is the answer of a node of the cluster c to WORKER c.
const inC = "worker=0 cluster=demo cluster_uuid=c"

func TestOtherNodesAreTried(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	guard := &tls.Config{Certificates: []tls.Certificate{ca.Pair("node", time.Now().Add(time.Hour)).TLS(t)}}
	asking := guard.Clone()
	asking.ClientAuth = tls.RequireAnyClientCert
	gone, err := net.Dial("tcp", fakePeer(t, nil, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	trusting := dialog.Client{TLS: &tls.Config{RootCAs: ca.Pool()}}
	for name, tc := range map[string]struct {
		creds   dialog.Client
		address string
		level   Level
		text    string
	}{
		"well":          {dialog.Client{}, fakePeer(t, nil, inC), OK, "other nodes answer and accept this one: 1"},
		"well over TLS": {trusting, fakePeer(t, guard, inC), OK, "accept this one: 1"},
		"gone": { // nobody listens at the port of a connection, and nobody else can
			dialog.Client{}, gone.LocalAddr().String(), Fail,
			"for ordered sequences: connection refused by 127.0.0.1:"},
		"no token":       {dialog.Client{}, fakePeer(t, nil, "-NOAUTH send AUTH"), Fail, "--peer-token-file"},
		"another token":  {dialog.Client{Token: "x"}, fakePeer(t, nil, "-WRONGPASS no"), Fail, "--peer-token-file"},
		"without TLS":    {trusting, fakePeer(t, nil, inC), Fail, "Give all nodes --tls-cert"},
		"needs TLS":      {dialog.Client{}, fakePeer(t, nil, replies.ErrNeedsTLS.Line()), Fail, "--tls-cert"},
		"not trusted":    {dialog.Client{TLS: &tls.Config{}}, fakePeer(t, guard, inC), Fail, "--peer-ca"},
		"no certificate": {trusting, fakePeer(t, asking, inC), Fail, "--tls-client-ca there"},
		"another cluster": {dialog.Client{}, fakePeer(t, nil, replies.NotInCluster("B", "b", "c").Line()), Fail,
			"this node belongs to cluster B (b), not to c"},
		"another service": {dialog.Client{}, fakePeer(t, nil, "220 hello"), Fail, "Check the address"},
	} {
		found := tryPeers(t.Context(), tc.creds, "c", []string{tc.address})
		if len(found) != 1 || found[0].Check != "peers" {
			t.Fatalf("%s: %+v", name, found)
		}
		found[0].wants(t, name, tc.level, tc.text)
	}
}

// Nothing is said about other nodes as long as the cluster has no ordered sequences.
func TestPeersOfACluster(t *testing.T) {
	other := fakePeer(t, nil, inC)
	for name, tc := range map[string]struct {
		own   string
		nodes []string
		want  string
	}{
		"no ordered sequences": {"", nil, ""},
		"alone":                {"ids-1:7609", []string{"ids-1:7609"}, ""},
		"without an address":   {"", []string{other}, "warn ok"},
		"another machine":      {"127.0.0.1:7609", []string{"192.0.2.1:1"}, "warn fail"},
		"the same machine":     {"127.0.0.1:7609", []string{other, "127.0.0.1:7609"}, "ok"},
	} {
		s := memzk.New(func() int64 { return time.Now().UnixMilli() }).Session()
		if err := s.EnsureRoot(t.Context(), "/seq", "/seq/nodes"); err != nil {
			t.Fatal(err)
		}
		cluster := coordinator.Cluster{UUID: "c", Slots: 1, HighestSlot: -1}
		if _, err := coordinator.CreateCluster(t.Context(), s, cluster, 0); err != nil {
			t.Fatal(err)
		}
		for _, address := range tc.nodes {
			if _, err := s.Create(t.Context(), "/seq/nodes/"+address, nil, store.Ephemeral); err != nil {
				t.Fatal(err)
			}
		}
		cfg := Config{Address: tc.own, Peer: func() (c dialog.Client, err error) { return c, nil }}
		var got []string
		for _, f := range checkPeers(t.Context(), cfg, s) {
			got = append(got, string(f.Level))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}
