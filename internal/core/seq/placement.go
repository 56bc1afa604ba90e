package seq

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// The nodes that may own sections are listed in ZooKeeper, each with an ephemeral record that is named after its
// address. Rendezvous hashing gives each section a place among them: the node that is asked first when nobody owns the
// section. It has no part in safety.

// place returns the address of the node that should own a section: this one if there is no other.
func (r *Node) place(section string) (best string) {
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

// movesAtOnce is the number of sections that a node gives away at each heartbeat, because they have their place at
// another node.
const movesAtOnce = 8

// Others reports whether another node may own sections.
func (r *Node) Others() bool {
	nodes := r.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(a string) bool { return a != r.own })
}

// leaves reports whether this node gives all its sections away.
func (r *Node) leaves() bool { return r.ending.Load() || r.leaving.Load() && r.Others() }

// Leave makes this node give its sections to other nodes. news: it had not been told before.
func (r *Node) Leave() (news bool) { return !r.leaving.Swap(true) }

// IsLeaving reports whether this node was told to give its sections to other nodes.
func (r *Node) IsLeaving() bool { return r.leaving.Load() }

// GiveAll makes this node give all its sections back, also if there is no other one.
func (r *Node) GiveAll() { r.ending.Store(true) }

// Used reports whether the node knows an ordered sequence.
func (r *Node) Used() bool { return r.inUse.Load() }

// takeMove reports whether this node should give a section away now, because the section has its place at another one.
// That uses up one of movesAtOnce.
func (r *Node) takeMove(section string) bool {
	return r.Others() && r.place(section) != r.own && r.movable.Add(-1) >= 0
}

// Meet reads the list of the nodes that may own sections, and keeps this node on it while it may.
func (r *Node) Meet(ctx context.Context, st store.Store, may func() bool) error {
	if !r.inUse.Load() || r.Pass == nil {
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

// Flaps reports whether the node has lost two leases in the last minute. Then others should own the sections (O9).
func (m *Section) Flaps(now int64) bool {
	return m.lapsed[0] != 0 && now-m.lapsed[0] < int64(time.Minute)
}
