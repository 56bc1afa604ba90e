package store

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
)

// MemTree is the tree of records with ZooKeeper's rules. Its "/" is the cluster's root. The
// checks run in the same order as in ZooKeeper 3.8.
type MemTree map[string]*memNode

type memNode struct {
	data    []byte // never changed in place, so clones share it
	stat    Stat
	kids    map[string]struct{}
	created int32 // children created ever, deleted ones included: the next sequence number
}

func (n *memNode) clone() *memNode {
	c := *n
	c.kids = maps.Clone(n.kids)
	return &c
}

// Clone returns a copy.
func (t MemTree) Clone() MemTree {
	c := make(MemTree, len(t))
	for p, n := range t {
		c[p] = n.clone()
	}
	return c
}

// txn holds the values that all operations of one write share.
type txn struct{ zxid, now, session int64 }

func (t MemTree) create(x txn, p string, data []byte, kind Kind) (string, error) {
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	parent, ok := t[dir]
	if !ok && p != "/" {
		return "", ErrNoNode
	}
	if kind == PersistentSequential {
		name = fmt.Sprintf("%s%010d", name, parent.created)
		p = path.Join(dir, name)
	}
	if _, ok := t[p]; ok {
		return "", ErrExists
	}
	node := &memNode{
		data: slices.Clone(data),
		stat: Stat{Czxid: x.zxid, Mzxid: x.zxid, Ctime: x.now, Mtime: x.now},
		kids: make(map[string]struct{}),
	}
	if kind == Ephemeral {
		node.stat.EphemeralOwner = x.session
	}
	if p != "/" {
		if parent.stat.EphemeralOwner != 0 {
			return "", errEphemeralParent
		}
		parent.kids[name] = struct{}{}
		parent.stat.Cversion++
		parent.stat.NumChildren++
		// ZooKeeper 3.8 only ever raises the count, so it stops at the largest int32. From
		// then on sequential creates fail with ErrExists. ZooKeeper's manual mentions
		// negative numbers, but only pipelined creates reach them.
		if parent.created < math.MaxInt32 {
			parent.created++
		}
	}
	t[p] = node
	return p, nil
}

func (t MemTree) set(x txn, p string, data []byte, version int32) (Stat, error) {
	node, err := t.check(p, version)
	if err != nil {
		return Stat{}, err
	}
	node.data = slices.Clone(data)
	node.stat.Version++
	node.stat.Mzxid, node.stat.Mtime = x.zxid, x.now
	return node.stat, nil
}

// Get returns a record, or ErrNoNode.
func (t MemTree) Get(p string) ([]byte, Stat, error) {
	node, err := t.check(p, AnyVersion)
	if err != nil {
		return nil, Stat{}, err
	}
	return slices.Clone(node.data), node.stat, nil
}

// Children returns the sorted names of the records below p, or ErrNoNode.
func (t MemTree) Children(p string) ([]string, error) {
	node, err := t.check(p, AnyVersion)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(node.kids)), nil
}

// SetCreateCount sets the number of the next sequential record below p. It returns ErrNoNode if p does not exist.
func (t MemTree) SetCreateCount(p string, n int32) error {
	node, err := t.check(p, AnyVersion)
	if err == nil {
		node.created = n
	}
	return err
}

func (t MemTree) check(p string, version int32) (*memNode, error) {
	node, ok := t[p]
	switch {
	case !ok:
		return nil, ErrNoNode
	case version != AnyVersion && version != node.stat.Version:
		return nil, ErrBadVersion
	}
	return node, nil
}

func (t MemTree) delete(p string, version int32) error {
	node, err := t.check(p, version)
	if err != nil {
		return err
	}
	if len(node.kids) > 0 {
		return ErrNotEmpty
	}
	t.remove(p)
	return nil
}

func (t MemTree) remove(p string) {
	delete(t, p)
	dir, name := path.Split(p)
	if parent, ok := t[path.Clean(dir)]; ok {
		delete(parent.kids, name)
		parent.stat.Cversion++
		parent.stat.NumChildren--
	}
}

// RemoveEphemerals removes the ephemeral records whose owner is gone.
func (t MemTree) RemoveEphemerals(gone func(owner int64) bool) {
	for p, n := range t {
		if n.stat.EphemeralOwner != 0 && gone(n.stat.EphemeralOwner) {
			t.remove(p)
		}
	}
}

// multi applies all operations or none. failed is the index of the first operation that
// cannot be applied, -1 if there is none.
func (t MemTree) multi(x txn, ops []Op) (failed int, err error) {
	before := make(map[string]*memNode) // nil for a missing record
	keep := func(p string) {
		if _, ok := before[p]; ok {
			return
		}
		before[p] = nil
		if n, ok := t[p]; ok {
			before[p] = n.clone()
		}
	}
	for i, op := range ops {
		switch op := op.(type) {
		case CheckOp:
			_, err = t.check(op.Path, op.Version)
		case CreateOp:
			keep(op.Path)
			keep(path.Dir(op.Path))
			_, err = t.create(x, op.Path, op.Data, op.kind())
		case SetOp:
			keep(op.Path)
			_, err = t.set(x, op.Path, op.Data, op.Version)
		case DeleteOp:
			keep(op.Path)
			keep(path.Dir(op.Path))
			err = t.delete(op.Path, op.Version)
		}
		if err != nil {
			for p, n := range before {
				if n == nil {
					delete(t, p)
				} else {
					t[p] = n
				}
			}
			return i, err
		}
	}
	return -1, nil
}
