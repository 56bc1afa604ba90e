package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zkstore"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/sequence"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// familyHouse is a cluster whose operators change families. No node runs.
type familyHouse struct {
	*testing.T
	admin store.Store
}

func eachFamily(t *testing.T, test func(f familyHouse)) {
	zkstore.Both(t, func(t *testing.T, open func() store.Store) {
		f := familyHouse{t, open()}
		err := f.admin.EnsureRoot(t.Context(), "/workers")
		if err == nil {
			cluster := coordinator.Cluster{UUID: "c", Slots: 1024, HighestSlot: -1}
			err = f.admin.Multi(t.Context(),
				store.CreateOp{Path: record.ClusterPath, Data: store.Marshal(cluster)},
				store.CreateOp{Path: record.StatePath, Data: record.State{Cluster: "c"}.Marshal()})
		}
		if err != nil {
			t.Fatal(err)
		}
		test(f)
	})
}

func (f familyHouse) operator() Commands { return Commands{Store: f.admin} }

// read reads /seq and the record of a name.
func (f familyHouse) read(name string) record.Snapshot {
	f.Helper()
	v, _, err := f.operator().look(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	return v.Snapshot
}

func ofFamily(name string, sections int) Definition {
	return Definition{
		Name: name, Mode: record.Ordered, Sections: sections,
		Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript},
		Settings: record.Settings{Block: 32, SupplyMs: 60_000, HoldMs: record.DefaultLease.Milliseconds(),
			Ceiling: 1000, HardCeiling: 1000},
	}
}

func (f familyHouse) found(name string) (record.Named, record.State) {
	f.Helper()
	n, st, err := f.operator().Find(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	return n, st
}

func (f familyHouse) creates(d Definition) record.Named {
	f.Helper()
	if _, err := f.operator().Create(f.Context(), d); err != nil {
		f.Fatal(err)
	}
	n, _ := f.found(d.Name)
	return n
}

// owns makes a section look as if its owner had taken all positions below next.
func (f familyHouse) owns(section string, next int64) {
	f.Helper()
	v := f.read(section)
	r := v.Record.Raised(next).Stamped("n", "node")
	r.Owner, r.Term, r.Address, r.OwnedAt = "n", r.Term+1, "a:1", 1
	if err := f.admin.Multi(f.Context(), record.SetOps(section, r, v.Stat.Version)...); err != nil {
		f.Fatal(err)
	}
}

func (f familyHouse) deletes(name string) record.Record {
	f.Helper()
	r, err := f.operator().Delete(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// passes lets sequence time pass.
func (f familyHouse) passes(ms int64) {
	f.Helper()
	v := f.read("x")
	v.State.Time += ms
	if err := f.admin.Multi(f.Context(), v.SetStateOps(*v.State)...); err != nil {
		f.Fatal(err)
	}
}

// The greatest family fits into one transaction, and all of it is shown as one.
func TestFamilyIsChangedInOneTransaction(t *testing.T) {
	eachFamily(t, func(f familyHouse) {
		name := "m" + strings.Repeat("/", sequence.MaxName-2) + "*" // each / takes three bytes in a path
		n := f.creates(ofFamily(name, positions.MaxSections))
		if len(n.Sections) != positions.MaxSections || n.Sections[17].Name != name+"17" || n.Next != 0 {
			f.Fatalf("%d sections, %+v", len(n.Sections), n.Record)
		}
		f.owns(name+"17", 5000)
		f.owns(name+"511", 70)
		_, err := f.operator().Set(f.Context(), name, Change{Next: new(int64(5000))})
		if err == nil || !strings.HasPrefix(err.Error(), "next cannot be 5000, because values up to 5000 may have") {
			f.Error(err)
		}
		_, err = f.operator().Set(f.Context(), name, Change{Settings: func(s *record.Settings) { s.HoldMs++ }})
		if err == nil || !strings.HasPrefix(err.Error(), "lease is 3s and cannot change") {
			f.Error(err)
		}
		change := Change{Next: new(int64(6001)), Settings: func(s *record.Settings) { s.Ceiling = 10 }}
		if _, err := f.operator().Set(f.Context(), name, change); err != nil {
			f.Fatal(err)
		}
		n, _ = f.found(name)
		for _, s := range n.Sections {
			if s.Next != 6000 || s.RaisedTo != 6000 || s.Ceiling != 10 || s.Mode != record.Ordered {
				f.Fatalf("%+v", s)
			}
		}
		if s := n.Sections[17]; s.Owner != "n" || s.Term != 1 || n.Term != 2 || n.Next != 6000 || n.Ceiling != 10 {
			f.Errorf("%+v", n)
		}
		all, _, err := f.operator().List(f.Context(), "")
		if err != nil || len(all) != 1 || len(all[0].Sections) != positions.MaxSections || all[0].Next != 6000 {
			f.Error(len(all), err)
		}
		f.deletes(name)
		f.passes(40_000)
		if err := f.operator().Purge(f.Context(), name); err != nil {
			f.Error(err)
		}
		all, st, err := f.operator().List(f.Context(), "")
		if err != nil || len(all) != 0 || st.Purged == 0 {
			f.Error(len(all), st, err)
		}
		if n = f.creates(ofFamily(name, 1)); n.Sections[0].Next != 0 || n.Sections[0].WriteCount <= st.Purged {
			f.Errorf("%+v", n)
		}
	})
}

// A later life of a family begins above all values of all sections of all earlier lives, whatever their number, and not
// before the owners of the last one have stopped.
func TestLaterLifeOfAFamilyIsAboveAllSections(t *testing.T) {
	eachFamily(t, func(f familyHouse) {
		next := int64(0)
		for life, sections := range []int{3, 2, 5, 1, 4} {
			n := f.creates(ofFamily("msg:*", sections))
			for _, s := range n.Sections {
				if s.Next != next || s.Above != next && next > 0 || s.ID == n.ID || s.Owner != "" || s.Term != 0 {
					f.Errorf("life %d begins at %d: %+v", life, next, s)
				}
			}
			if len(n.Sections) != sections {
				f.Errorf("life %d has %d sections", life, len(n.Sections))
			}
			if life != 2 { // one life is not used
				next += 100
				f.owns(record.SectionName("msg:*", sections-1), next)
			}
			f.deletes("msg:*")
			n, st := f.found("msg:*")
			if left := n.IssuableFor(st); n.Sections != nil || left != record.DefaultLease+2*record.MostRaise {
				f.Errorf("life %d: %s, %+v", life, left, n)
			}
			if _, err := f.operator().Create(f.Context(), ofFamily("msg:*", 3)); !errors.Is(err, ErrTooEarly) {
				f.Error(err)
			}
			if err := f.operator().Purge(f.Context(), "msg:*"); !errors.Is(err, ErrTooEarly) {
				f.Error(err)
			}
			f.passes(record.DefaultLease.Milliseconds() + 2*record.MostRaise.Milliseconds())
		}
	})
}

func TestChangeBeginsAnewIfTheSessionEnds(t *testing.T) {
	eachFamily(t, func(f familyHouse) {
		o := f.operator()
		o.Store = &endsASession{Store: o.Store}
		if _, _, err := o.Find(f.Context(), "order"); !errors.Is(err, ErrNotFound) {
			f.Error(err)
		}
	})
}

// endsASession is a store whose session ends at its first GetAll, as that of ZooKeeper before 3.6 does.
type endsASession struct {
	store.Store
	ended bool
}

func (s *endsASession) SessionID() int64 {
	if s.ended {
		return 2
	}
	return 1
}

func (s *endsASession) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	if !s.ended {
		s.ended = true
		return nil, store.ErrUnreachable
	}
	return s.Store.GetAll(store.OnSession(ctx, s.Store.SessionID()), paths...)
}
