package seq

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// The nodes that may own sections are listed in ZooKeeper, each with an ephemeral record that is named after its
// address. Rendezvous hashing gives each section a place among them: the node that is asked first when nobody owns the
// section. It has no part in safety.

// place returns the address of the node that should own a section: this one if there is no other.
func (r *relay) place(section string) (best string) {
	nodes := r.nodes.Load()
	if nodes == nil || len(*nodes) == 0 {
		return r.own
	}
	var most uint64
	for _, address := range *nodes {
		h := fnv.New64a()
		h.Write([]byte(address + " " + section)) // never fails
		// The last bytes of the section change only the lower bits, which must count, too.
		if w := h.Sum64() * 0x9E3779B97F4A7C15; best == "" || w^w>>29 > most {
			best, most = address, w^w>>29
		}
	}
	return best
}

// others reports whether another node may own sections.
func (r *relay) others() bool {
	nodes := r.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(a string) bool { return a != r.own })
}

// leaves reports whether this node gives all its sections away.
func (r *relay) leaves() bool { return r.ending.Load() || r.leaving.Load() && r.others() }

// takeMove reports whether this node should give a section away now, because the section has its place at another one.
// That uses up one of movesAtOnce.
func (r *relay) takeMove(section string) bool {
	return r.others() && r.place(section) != r.own && r.movable.Add(-1) >= 0
}

// movesAtOnce is the number of sections that a node gives away at each heartbeat, because they have their place at
// another node.
const movesAtOnce = 8

// keepPlace follows the list of nodes at each heartbeat, and leaves it when this node gives its sections away.
func (i *Rounds) keepPlace(ctx context.Context, cluster ClusterInfo, followed bool) error {
	leaving := i.relay.leaving.Load()
	if !followed && leaving == i.sawLeaving {
		return nil
	}
	if leaving != i.sawLeaving {
		i.sawLeaving, i.unfinished = leaving, true // all that this node owns is due
	}
	err := i.relay.meet(ctx, i.cfg.Store, func() bool { return i.unconfirmed(cluster) == 0 && !i.flaps() })
	refused := err != nil && !errors.Is(err, store.ErrUnreachable)
	if refused && !i.unlisted {
		i.cfg.Log.Warn("sequences: this node cannot tell others that it may own ordered sequences", "error", err)
	}
	i.unlisted = refused
	if refused { // nothing else needs the list
		return nil
	}
	return err
}

// meet reads the list of the nodes that may own sections, and keeps this node on it while it may.
func (r *relay) meet(ctx context.Context, st store.Store, may func() bool) error {
	if !r.inUse.Load() || r.pass == nil {
		return nil
	}
	nodes, err := st.Children(ctx, record.NodesDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	r.movable.Store(movesAtOnce)
	listed, stays := slices.Contains(nodes, r.own), r.own != "" && !r.leaving.Load() && may()
	switch {
	case stays && !listed:
		if err := st.EnsureRoot(ctx, record.StatePath, record.NodesDir); err != nil {
			return err
		}
		_, err := st.Create(ctx, record.NodesDir+"/"+r.own, nil, store.Ephemeral)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
		nodes = append(nodes, r.own)
	case !stays && listed:
		err := st.Delete(ctx, record.NodesDir+"/"+r.own, store.AnyVersion)
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return err
		}
		nodes = slices.DeleteFunc(nodes, func(a string) bool { return a == r.own })
	}
	r.nodes.Store(&nodes)
	return nil
}

// flaps reports whether the node has lost two leases in the last minute. Then others should own the sections (O9).
func (m *ordered) flaps(now int64) bool {
	return m.lapsed[0] != 0 && now-m.lapsed[0] < int64(time.Minute)
}

// flaps reports whether a section was lost twice in a minute (O9).
func (i *Rounds) flaps() bool {
	now := i.now()
	for _, s := range i.list() {
		s.mu.Lock()
		m, ok := s.mode.(*ordered)
		flaps := ok && m.flaps(now)
		s.mu.Unlock()
		if flaps {
			return true
		}
	}
	return false
}

// Leave makes this node give its ordered sequences to other nodes, if there are any. From then on it passes
// requests on.
func (i *Issuer) Leave() {
	if !i.relay.leaving.Swap(true) {
		i.Wake()
	}
}

// Left reports whether no section is left to give away: this node owns none, or no other node may own any.
func (i *Issuer) Left() bool { return !i.relay.inUse.Load() || !i.relay.others() || !i.owns() }

// owns reports whether this node owns a section.
func (i *Issuer) owns() bool {
	return slices.ContainsFunc(i.list(), func(s *series) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.owned() != nil
	})
}

// family is a family as a node knows it.
type family struct {
	name     string // with the *
	prefix   string
	sections []atomic.Pointer[series] // none: it was deleted
	// most is the greatest number of sections in any of its lives, which are purged together, and gen the Gen of its
	// record.
	most int
	gen  int64
}

// families are those that a node knows. Any goroutine may read all.
type families struct {
	mu  sync.Mutex // guards writes of all, and changed
	all atomic.Pointer[[]*family]
	// changed are the sections of families whose records have changed.
	changed []string
}

// know takes over the record of a name that ends with *, nil for none. It is one of these:
//
//   - A family. Its sections answer the names.
//   - The tombstone of a family, or a template if the node missed the purge between the two. No name belongs to it. Its
//     sections, also those of earlier lives, are read when this record has changed: they have tombstones of their own.
//   - A template or its tombstone, and the name was never a family: nothing is noted.
//   - None. The name was purged, and its sections with it: they are read once more.
func (f *families) know(name string, r *record.Record) {
	if f == nil || !positions.IsTemplate(name) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, others := new(family), []*family(nil)
	for _, one := range f.list() {
		if one.name == name {
			was = one
		} else {
			others = append(others, one)
		}
	}
	now := &family{name: name, prefix: strings.TrimSuffix(name, "*")}
	if r != nil {
		now.most, now.gen = max(r.Sections, was.most), r.Gen
	}
	if now.most != was.most || now.gen != was.gen {
		for k := range max(was.most, now.most) {
			f.changed = append(f.changed, record.SectionName(name, k))
		}
	}
	if r.Kind() == record.Family {
		if now.sections = was.sections; len(now.sections) != r.Sections {
			now.sections = make([]atomic.Pointer[series], r.Sections)
		}
	}
	if now.most > 0 {
		others = append(others, now)
	}
	f.all.Store(&others)
}

func (f *families) list() []*family {
	if all := f.all.Load(); all != nil {
		return *all
	}
	return nil
}

// popChanged returns the sections that must be read, each once.
func (f *families) popChanged() (sections []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sections, f.changed = f.changed, nil
	return sections
}

// of returns the family of a name, nil if it belongs to none. No prefix begins with another one.
func (f *families) of(name []byte) *family {
	for _, one := range f.list() {
		if len(name) > len(one.prefix) && string(name[:len(one.prefix)]) == one.prefix && len(one.sections) > 0 {
			return one
		}
	}
	return nil
}

// section returns the series of the section of a name, and the name's lane in it.
func (c *catalog) section(f *family, name []byte) (s *series, lane int) {
	k, lane := positions.Place(name, len(f.sections))
	if s = f.sections[k].Load(); s != nil && !s.forgotten.Load() {
		return s, lane
	}
	s = c.named(record.SectionName(f.name, k))
	f.sections[k].Store(s)
	return s, lane
}
