package zkstore

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"
)

// OwnRecords gives all records of the cluster to the users of DigestAuth, and takes them from
// all others. Records that everybody may read stay readable. It returns the number of records.
// Records above the cluster's root do not change. A record that another session creates
// meanwhile has the ACL of that session. OwnRecords may be called again after an error.
func (z *ZK) OwnRecords(ctx context.Context) (int, error) {
	if z.cfg.DigestAuth == "" {
		return 0, errors.New("changing the owners of records needs a user and a password")
	}
	return z.own(ctx, z.root)
}

// own changes the record at path, which is that in ZooKeeper, and then the records below it.
func (z *ZK) own(ctx context.Context, at string) (int, error) {
	_, err := call(ctx, z, "setacl", at, func(c *zk.Conn) (*zk.Stat, error) {
		acl, stat, err := c.GetACL(at)
		if err != nil {
			return nil, err
		}
		return c.SetACL(at, z.cfg.acl(readableByAll(acl) || z.cfg.WorldReadable && open(acl)), stat.Aversion)
	})
	if errors.Is(err, ErrNoNode) && at != z.root {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	names, err := call(ctx, z, "children", at, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(at)
		return names, err
	})
	if err != nil && !errors.Is(err, ErrNoNode) {
		return 1, err
	}
	count := 1
	for _, name := range names {
		n, err := z.own(ctx, path.Join(at, name))
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

// readableByAll reports whether the ACL lets everybody read and nothing more.
func readableByAll(acl []zk.ACL) bool {
	for _, a := range acl {
		if a.Scheme == "world" {
			return a.Perms == zk.PermRead
		}
	}
	return false
}

// open reports whether the ACL lets everybody change the record.
func open(acl []zk.ACL) bool {
	for _, a := range acl {
		if a.Scheme == "world" && a.Perms&^zk.PermRead != 0 {
			return true
		}
	}
	return false
}
