package poll

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ops/health"
)

func TestWhereNodesAreAsked(t *testing.T) {
	for _, row := range []struct{ addresses, host, want string }{
		{"10.0.0.1:7609", "h2", "10.0.0.1:7609"},
		{"10.0.0.1:7609", "", "10.0.0.1:7609"},
		{"ids-2.example:7609", "h2", "ids-2.example:7609"},
		{"127.0.0.1:7609", "here", "127.0.0.1:7609"},
		{"127.0.0.1:7609", "h2", ""}, // another machine's, where somebody else may answer
		{"127.8.0.1:7609", "h2", ""},
		{"[::1]:7609", "h2", ""},
		{"[::1]:7609", "here", "[::1]:7609"},
		{"localhost:7609", "h2", ""},
		{"localhost:7609", "here", "localhost:7609"},
		{"0.0.0.0:7609", "h2", "h2:7609"},
		{"[::]:7609", "h2", "h2:7609"},
		{":7609", "h2", "h2:7609"},
		{":7609", "here", "127.0.0.1:7609"},
		{":7609", "", ""},
		{"", "here", ""},
		{"http://10.0.0.1:7610", "h2", ""},
		{"unix:/run/flaked.sock", "here", "unix:/run/flaked.sock"},
		{"unix:/run/flaked.sock", "h2", ""},
		{"unix:relative", "here", ""},
		{"unix:/run/flaked.sock,127.0.0.1:7609,10.0.0.1:7609", "h2", "10.0.0.1:7609"},
		{"unix:/run/flaked.sock,127.0.0.1:7609", "here", "unix:/run/flaked.sock 127.0.0.1:7609"},
	} {
		a := &Asker{Host: "here"}
		if got := strings.Join(a.dialAddresses(row.addresses, row.host), " "); got != row.want {
			t.Errorf("%q of %q: %q, want %q", row.addresses, row.host, got, row.want)
		}
	}
	nameless := &Asker{}
	if got := nameless.dialAddresses("127.0.0.1:7609,unix:/run/flaked.sock", ""); got != nil {
		t.Errorf("a machine without a name asks %q", got)
	}
}

// The token goes to this machine, to where --token-file and --addr send it, and by TLS to servers of an
// authority that the user named. A public authority does not vouch for an address in a record.
func TestWhoGetsTheToken(t *testing.T) {
	own, public := &tls.Config{RootCAs: x509.NewCertPool()}, &tls.Config{}
	for _, row := range []struct {
		name, at          string
		tls               *tls.Config
		everywhere, named bool
		sent              bool
	}{
		{"this machine", "127.0.0.1:7609", nil, false, false, true},
		{"a unix socket", "unix:/run/flaked.sock", nil, false, false, true},
		{"another one", "10.0.0.1:7609", nil, false, false, false},
		{"another one of --addr", "10.0.0.1:7609", nil, false, true, true},
		{"another one, with --token-file", "10.0.0.1:7609", nil, true, false, true},
		{"another one, with --tls", "10.0.0.1:7609", public, false, false, false},
		{"another one, with --tls-ca", "10.0.0.1:7609", own, false, false, true},
	} {
		a := &Asker{Token: "s3cret", Everywhere: row.everywhere, TLS: row.tls}
		if got := a.tokenFor(row.at, row.named); (got == "s3cret") != row.sent || got != "" && !row.sent {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// However many addresses hang, at most maxParallel are asked at once.
func TestManyAddressesThatHang(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked, together atomic.Int64 // together: until the first connection ends
	var serving sync.WaitGroup
	serving.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			asked.Add(1)
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn)
				together.CompareAndSwap(0, asked.Load())
			})
		}
	})
	hangs := strings.TrimSuffix(strings.Repeat(l.Addr().String()+",", 8), ",")
	var workers []health.WorkerReport
	for range 3 * maxParallel / 8 {
		workers = append(workers, health.WorkerReport{Host: "here", State: health.Live, Address: hangs})
	}
	a := &Asker{Host: "here", Advice: func(error) string { return "" }}
	a.AskWorkers(t.Context(), health.ClusterReport{}, workers)
	l.Close()
	serving.Wait()
	// The client may open its next connections before the first one is seen to end.
	if n := together.Load(); n == 0 || n > 2*maxParallel || workers[0].Outcome != health.TimedOut {
		t.Errorf("%d addresses were asked at once, and the first node: %q", n, workers[0].Outcome)
	}
}

// If all addresses but the last ones hang, those still have a turn.
func TestTimeOfAnAddressThatHangs(t *testing.T) {
	for _, n := range []int{
		0, 1, maxParallel, maxParallel + 1, 2 * maxParallel, 2*maxParallel + 1, 5 * maxParallel, 7 * maxParallel,
	} {
		most, before := timePerAddress(n), time.Duration(max(n-1, 0)/maxParallel)
		if most < addressTime || before*most+most > clusterTime || n <= maxParallel && most != clusterTime {
			t.Errorf("%d addresses: %v each", n, most)
		}
	}
	if most := timePerAddress(16384); most != addressTime {
		t.Errorf("%v", most)
	}
}
