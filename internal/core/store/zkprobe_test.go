package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestProbeReportsAccessAndLeavesNothingBehind(t *testing.T) {
	ens := zktest.Shared(t)
	at := zktest.Chroot(t, ens)
	connect, err := ParseConnect(at)
	if err != nil {
		t.Fatal(err)
	}
	chroot := connect.Chroot
	clock := func() int64 { return time.Now().UnixMilli() }
	ours := ZKConfig{Connect: at, DigestAuth: "us:secret"}
	probe := func(cfg ZKConfig) (Probe, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return newZK(t, cfg).Probe(ctx, clock)
	}

	p, err := probe(ours)
	if err != nil || p.At != chroot || p.Root || !p.Chroot || !p.Open || !p.Modern {
		t.Errorf("before there is a cluster: %+v, %v", p, err)
	}
	if p.Write <= 0 || p.Read <= 0 || p.Acked < p.Sent ||
		p.Stamp < p.Sent-1000 || p.Stamp > p.Acked+1000 || p.Zxid == 0 {
		t.Errorf("its measurements: %+v", p)
	}

	z := newZK(t, ours)
	if err := z.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	before := tree(t, z)
	if p, err = probe(ours); err != nil || p.At != z.Root() || !p.Root || p.Open {
		t.Errorf("in a cluster of ours: %+v, %v", p, err)
	}
	if after := tree(t, z); !slices.Equal(before, after) {
		t.Errorf("left behind: %q, before: %q", after, before)
	}
	p, err = probe(ZKConfig{Connect: at})
	if !errors.Is(err, ErrDenied) || p.At != z.Root() {
		t.Errorf("in a cluster of somebody else's: %+v, %v", p, err)
	}
	p, err = probe(ZKConfig{Connect: at + "/deeper/down"})
	if err != nil || p.Chroot || p.At != chroot {
		t.Errorf("below a chroot that is not there: %+v, %v", p, err)
	}
}

// tree returns the names in the cluster's root. It fails the test if anything was created
// or deleted below one of them, because doctor must not touch the tickets.
func tree(t *testing.T, z *ZK) []string {
	t.Helper()
	names, err := z.Children(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Clone(names) {
		version, err := call(t.Context(), z, "exists", z.full("/"+name), func(c *zkClient) (int32, error) {
			_, stat, err := c.conn.Exists(z.full("/" + name))
			return stat.Cversion, err
		})
		if err != nil || version != 0 {
			t.Errorf("/%s was changed %d times: %v", name, version, err)
		}
	}
	return names
}
