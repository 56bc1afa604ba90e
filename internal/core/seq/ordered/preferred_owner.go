package ordered

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// The nodes that may own sections are listed in ZooKeeper, each with an ephemeral record that is named after its
// address. Rendezvous hashing gives each section one of them as its preferred owner: the node that is asked first when
// nobody owns the section. It has no part in safety.

// preferredAddress returns the address of the node that should own a section: this one if there is no other.
func (sh *Shared) preferredAddress(section string) string {
	nodes := sh.nodes.Load()
	if nodes == nil || len(*nodes) == 0 {
		return sh.ownAddress
	}
	return PreferredAddress(*nodes, section)
}

// PreferredAddress returns the address, of those that are listed, of the node that should own a section. "": there is
// none.
func PreferredAddress(addresses []string, section string) (best string) {
	var most uint64
	for _, address := range addresses {
		h := fnv.New64a()
		h.Write([]byte(address + " " + section)) // never fails
		// The last bytes of the section change only the lower bits, which must count, too.
		if w := h.Sum64() * 0x9E3779B97F4A7C15; best == "" || w^w>>29 > most {
			best, most = address, w^w>>29
		}
	}
	return best
}

// movesAtOnce is the most sections that a node gives away between two heartbeats, because another node is their
// preferred owner.
const movesAtOnce = 8

// HasOthers reports whether another node may own sections.
func (sh *Shared) HasOthers() bool {
	nodes := sh.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(a string) bool { return a != sh.ownAddress })
}

// useMove reports whether this node should give a section away now, because another one is its preferred owner. If so,
// it uses up one of movesAtOnce.
func (sh *Shared) useMove(section string) bool {
	return sh.HasOthers() && sh.preferredAddress(section) != sh.ownAddress && sh.movesLeft.Add(-1) >= 0
}

// KeepListed reads the list of the nodes that may own sections, and keeps this node on it while it may. It also allows
// movesAtOnce moves again.
func (sh *Shared) KeepListed(ctx context.Context, st store.Store, may func() bool) error {
	if !sh.hadSections.Load() || sh.Forward == nil {
		return nil
	}
	nodes, err := st.Children(ctx, record.NodesDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	sh.movesLeft.Store(movesAtOnce)
	listed, stays := slices.Contains(nodes, sh.ownAddress), sh.ownAddress != "" && !sh.leaving.Load() && may()
	switch {
	case stays && !listed:
		if err := st.EnsureRoot(ctx, record.StatePath, record.NodesDir); err != nil {
			return err
		}
		_, err := st.Create(ctx, record.NodesDir+"/"+sh.ownAddress, nil, store.Ephemeral)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
		nodes = append(nodes, sh.ownAddress)
	case !stays && listed:
		err := st.Delete(ctx, record.NodesDir+"/"+sh.ownAddress, store.AnyVersion)
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return err
		}
		nodes = slices.DeleteFunc(nodes, func(a string) bool { return a == sh.ownAddress })
	}
	sh.nodes.Store(&nodes)
	return nil
}
