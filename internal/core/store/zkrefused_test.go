package store

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestQuotaRefusesWritesByName(t *testing.T) {
	ens := zktest.Single(t, "enforceQuota=true")
	z := newZK(t, ZKConfig{Connect: ens.Addr()})
	if err := z.EnsureRoot(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	ens.Quota(t, "/flaked", 10, 3) // as many as there are
	_, create := z.Create(t.Context(), "/b", nil, Persistent)
	_, set := z.Set(t.Context(), "/a", make([]byte, 11), AnyVersion)
	multi := z.Multi(t.Context(), CheckOp{"/a", 0}, CreateOp{Path: "/b"})
	for call, err := range map[string]error{
		"create": create, "set": set, "multi": multi, "root": z.EnsureRoot(t.Context(), "/b"),
	} {
		if !errors.Is(err, ErrQuota) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if _, stat, err := z.Get(t.Context(), "/a"); err != nil || stat.Version != 0 {
		t.Errorf("the record was written: %+v, %v", stat, err)
	}
}

func TestLocalSessionsRefuseEphemeralsByName(t *testing.T) {
	z := newZK(t, ZKConfig{Connect: zktest.Three(t, "localSessionsEnabled=true").Addr()})
	if err := z.EnsureRoot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Create(t.Context(), "/a", nil, Ephemeral); !errors.Is(err, ErrLocalSession) {
		t.Error(err)
	}
}
