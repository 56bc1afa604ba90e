package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// unreachable makes the kernel drop all packets to an address of the loopback network, until the test ends or mend is
// called. A node listens there itself, so no faultnet.Link can take its place.
func unreachable(t testing.TB, host string) (mend func()) {
	t.Helper()
	route := func(what string) error {
		out, err := exec.Command("ip", "route", what, "unreachable", host+"/32", "table", "local").CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip route: %w: %s", err, out)
		}
		return nil
	}
	if err := route("add"); err != nil {
		t.Fatal(err)
	}
	mended := false
	mend = func() {
		if !mended {
			mended = true
			if err := route("del"); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(mend)
	return mend
}

// The other nodes cannot reach the owner, which renews its lease. They say which address they tried. Clients of the
// owner notice nothing.
func TestOrderedSequencesSurviveACutBetweenNodes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("cutting nodes off from each other needs root and ip")
	}
	f := newFleetSite(t, zktest.Chroot(t, zktest.Shared(t)))
	subnet := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250))
	for i := range 3 {
		address := fmt.Sprintf("%s%d:7609", subnet, i+1)
		f.has(f.Node("--listen", address).OnSocket(), address)
	}
	f.begin()
	var owner *harness.Node
	var address string
	mend, from := func() {}, f.IDs.Now()
	harness.Eventually(t, "the others name the address that they tried", func() bool {
		// The first owner may give the section to another node, which has its place.
		if now := f.owner(harness.Plain); now != owner {
			mend()
			owner, address = now, f.addresses[now.ID]
			mend = unreachable(t, strings.TrimSuffix(address, ":7609"))
		}
		for _, n := range f.others(owner) {
			_, err := f.Named(t, harness.Plain).One(n)
			if err == nil || !strings.Contains(err.Error(), "-NOTREADY reason=no-owner ") ||
				!strings.Contains(err.Error(), address) {
				return false
			}
		}
		return true
	})
	f.silentFor("the owner is cut off from other nodes", from, time.Second)
	mend()
	for _, n := range f.nodes {
		f.answered(n, f.IDs.Now())
	}
	f.end()
}
