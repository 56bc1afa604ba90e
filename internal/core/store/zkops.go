package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// full returns the path in ZooKeeper of a path that is relative to the root.
func (z *ZK) full(path string) string {
	if path == "/" {
		return z.root
	}
	return z.root + path
}

// callAt makes a call about one record. f gets the record's full path.
func callAt[T any](ctx context.Context, z *ZK, op, path string, f func(*zk.Conn, string) (T, error)) (T, error) {
	if err := checkCall(op, path); err != nil {
		var none T
		return none, err
	}
	full := z.full(path)
	return call(ctx, z, op, full, func(c *zkClient) (T, error) { return f(c.conn, full) })
}

func (z *ZK) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	r, err := callAt(ctx, z, "get", path, func(c *zk.Conn, full string) (Record, error) {
		data, stat, err := c.Get(full)
		return Record{Data: data, Stat: fromZK(stat)}, err
	})
	return r.Data, r.Stat, err
}

func (z *ZK) Children(ctx context.Context, path string) ([]string, error) {
	names, err := callAt(ctx, z, "children", path, func(c *zk.Conn, full string) ([]string, error) {
		names, _, err := c.Children(full)
		return names, err
	})
	slices.Sort(names)
	return names, err
}

func (z *ZK) Create(ctx context.Context, path string, data []byte, kind Kind) (string, error) {
	if err := checkCreate(path, data, kind); err != nil {
		return "", err
	}
	made, err := callAt(ctx, z, "create", path, func(c *zk.Conn, full string) (string, error) {
		return c.Create(full, data, flags(kind), z.acl)
	})
	return strings.TrimPrefix(made, z.root), err
}

// flags returns the client's flags for a kind of record. Persistent is the absence of FlagEphemeral.
func flags(kind Kind) int32 {
	switch kind {
	case PersistentSequential:
		return zk.FlagSequence
	case Ephemeral:
		return zk.FlagEphemeral
	}
	return 0
}

func (z *ZK) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := checkSize("set", path, len(data)); err != nil {
		return Stat{}, err
	}
	return callAt(ctx, z, "set", path, func(c *zk.Conn, full string) (Stat, error) {
		stat, err := c.Set(full, data, version)
		return fromZK(stat), err
	})
}

func (z *ZK) Delete(ctx context.Context, path string, version int32) error {
	_, err := callAt(ctx, z, "delete", path, func(c *zk.Conn, full string) (struct{}, error) {
		return struct{}{}, c.Delete(full, version)
	})
	return err
}

func (z *ZK) Multi(ctx context.Context, ops ...Op) error {
	if err := checkOps(ops); err != nil || len(ops) == 0 {
		return err
	}
	reqs := make([]any, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case CheckOp:
			reqs[i] = &zk.CheckVersionRequest{Path: z.full(op.Path), Version: op.Version}
		case CreateOp:
			acl := z.acl
			if op.Secret {
				acl = z.secret
			}
			reqs[i] = &zk.CreateRequest{Path: z.full(op.Path), Data: op.Data, Acl: acl, Flags: flags(op.kind())}
		case SetOp:
			reqs[i] = &zk.SetDataRequest{Path: z.full(op.Path), Data: op.Data, Version: op.Version}
		case DeleteOp:
			reqs[i] = &zk.DeleteRequest{Path: z.full(op.Path), Version: op.Version}
		}
	}
	type multiResult struct {
		failed int // the operation at fault, -1 when it is none of them
		err    error
	}
	r, err := call(ctx, z, "multi", z.root, func(c *zkClient) (multiResult, error) {
		// The failed operation is the first that has an error. The server reports success
		// for the operations before it, and "runtime inconsistency" for those after it.
		results, err := c.conn.Multi(reqs...)
		if err != nil && len(results) == len(reqs) {
			for i, res := range results {
				if res.Error != nil {
					return multiResult{i, res.Error}, nil
				}
			}
		}
		return multiResult{-1, nil}, err
	})
	if err == nil && r.failed >= 0 {
		return mapErr("multi", describeOp(r.failed, ops[r.failed]), r.err)
	}
	return err
}

func (z *ZK) Sync(ctx context.Context, path string) error {
	_, err := callAt(ctx, z, "sync", path, (*zk.Conn).Sync)
	return err
}

// EnsureRoot is part of Store. It also creates the chroot and its parents, with the ACL of
// every other record. If several users share /flaked, an administrator must create it
// first.
func (z *ZK) EnsureRoot(ctx context.Context, paths ...string) error {
	if err := checkRoot(paths); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	var all []string
	for i := 1; i < len(z.root); i++ {
		if z.root[i] == '/' {
			all = append(all, z.root[:i])
		}
	}
	all = append(all, z.root)
	for _, path := range paths {
		all = append(all, z.root+path)
	}
	for _, path := range all {
		// Look first: ZooKeeper denies a create below another user's record even if the new
		// record exists already.
		there, err := z.exists(ctx, path)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		_, err = call(ctx, z, "create", path, func(c *zkClient) (string, error) {
			return c.conn.Create(path, nil, 0, z.acl)
		})
		if err != nil && !errors.Is(err, ErrExists) {
			return err
		}
	}
	return nil
}

// exists reports whether a record exists. path is that in ZooKeeper.
func (z *ZK) exists(ctx context.Context, path string) (bool, error) {
	return call(ctx, z, "exists", path, func(c *zkClient) (bool, error) {
		there, _, err := c.conn.Exists(path)
		return there, err
	})
}

func fromZK(s *zk.Stat) Stat {
	if s == nil {
		return Stat{}
	}
	return Stat{
		Version: s.Version,
		Czxid:   s.Czxid, Mzxid: s.Mzxid,
		Ctime: s.Ctime, Mtime: s.Mtime,
		EphemeralOwner: s.EphemeralOwner, Cversion: s.Cversion, NumChildren: s.NumChildren,
	}
}
