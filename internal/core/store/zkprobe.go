package store

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
)

// Probe is the result of ZK.Probe, which fills it in step by step. After an error the
// remaining fields are zero.
type Probe struct {
	// Chroot and Root report whether the connect string's chroot and the cluster's root
	// exist.
	Chroot, Root bool
	// Open reports whether anybody may change the record at At.
	Open bool
	// At is the path of the nearest record that exists: the cluster's root or one above it.
	At string
	// Write and Read are the median durations of three writes and of three reads.
	Write, Read time.Duration
	// Sent and Acked are the times by our clock when one write began and was acknowledged.
	// Stamp is the leader's timestamp of that write. All three are Unix milliseconds. Zxid
	// is the write's zxid.
	Sent, Acked, Stamp int64
	Zxid               int64
	// Members are the client addresses of the servers, by the ensemble's own configuration.
	// An address is "" if the configuration omits it. Members is nil on a standalone
	// server. Modern reports whether the server has that configuration, as ZooKeeper has
	// since 3.5.
	Members []string
	Modern  bool
}

// Probe creates, changes and removes an ephemeral record in the cluster's root, or in the
// nearest record above the root that exists. flaked reads no such record. clock returns
// Unix milliseconds.
func (z *ZK) Probe(ctx context.Context, clock func() int64) (p Probe, err error) {
	if err := z.findRoot(ctx, &p); err != nil {
		return p, err
	}
	p.Members, p.Modern = z.members(ctx)
	acl, err := call(ctx, z, "getacl", p.At, func(c *zkClient) ([]zk.ACL, error) {
		acl, _, err := c.conn.GetACL(p.At)
		return acl, err
	})
	// A denied read of the ACL does not end the probe. Open stays false, and the writes
	// below show what is allowed.
	if err != nil && !errors.Is(err, ErrDenied) {
		return p, err
	}
	for _, a := range acl {
		p.Open = p.Open || a.Scheme == "world" && a.Perms&(zk.PermWrite|zk.PermCreate|zk.PermDelete|zk.PermAdmin) != 0
	}
	return p, z.tryWrites(ctx, &p, clock)
}

// findRoot finds the nearest record at or above the cluster's root that exists, and sets
// At, Root and Chroot.
func (z *ZK) findRoot(ctx context.Context, p *Probe) error {
	p.Chroot = z.connect.Chroot == ""
	for at := z.root; ; at = path.Dir(at) {
		there, err := z.exists(ctx, at)
		if err != nil {
			return err
		}
		if there {
			p.At, p.Root = at, at == z.root
			p.Chroot = p.Chroot || strings.HasPrefix(at+"/", z.connect.Chroot+"/")
			return nil
		}
	}
}

// members reads the client addresses from the ensemble's own configuration. modern reports
// whether the configuration exists, even if it may not be read.
func (z *ZK) members(ctx context.Context) (members []string, modern bool) {
	const at = "/zookeeper/config" // since 3.5
	data, err := call(ctx, z, "get", at, func(c *zkClient) ([]byte, error) {
		data, _, err := c.conn.Get(at)
		return data, err
	})
	for line := range strings.Lines(string(data)) {
		// server.1=zk1:2888:3888:participant;0.0.0.0:2181
		if server, ok := strings.CutPrefix(strings.TrimSpace(line), "server."); ok {
			_, client, _ := strings.Cut(server, ";")
			members = append(members, client)
		}
	}
	return members, err == nil || errors.Is(err, ErrDenied)
}

// tryWrites creates, sets and deletes an ephemeral record, and reads p.At after each of
// these writes. It times all six calls.
func (z *ZK) tryWrites(ctx context.Context, p *Probe, clock func() int64) error {
	at := path.Join(p.At, "flaked-doctor-"+uuid.NewString())
	var writes, reads []time.Duration
	write := func(op string, f func(c *zkClient) (*zk.Stat, error)) error {
		begin := time.Now()
		sent := clock()
		stat, err := call(ctx, z, op, at, f)
		if err != nil {
			return err
		}
		writes = append(writes, time.Since(begin))
		if stat != nil {
			p.Sent, p.Acked, p.Stamp, p.Zxid = sent, clock(), stat.Mtime, stat.Mzxid
		}
		begin = time.Now()
		_, err = z.exists(ctx, p.At)
		reads = append(reads, time.Since(begin))
		return err
	}
	if err := write("create", func(c *zkClient) (*zk.Stat, error) {
		_, err := c.conn.Create(at, nil, zk.FlagEphemeral, z.acl)
		return nil, err
	}); err != nil {
		return err
	}
	if err := write("set", func(c *zkClient) (*zk.Stat, error) { return c.conn.Set(at, []byte("x"), 0) }); err != nil {
		return err
	}
	if err := write("delete", func(c *zkClient) (*zk.Stat, error) {
		return nil, c.conn.Delete(at, AnyVersion)
	}); err != nil {
		return err
	}
	p.Write, p.Read = median(writes), median(reads)
	return nil
}

func median(of []time.Duration) time.Duration {
	return max(min(of[0], of[1]), min(max(of[0], of[1]), of[2]))
}
