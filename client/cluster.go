package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// cluster is the cluster that a client wants. An address is not an identity: a node of another cluster may listen there
// by now. So each connection begins with the question which cluster answers, in one write with its first request.
type cluster struct {
	mu sync.Mutex
	// wanted is Config.Cluster at first, and then the UUID of the first node that has answered. name, uuid and addr are
	// of that node.
	wanted, name, uuid, addr string

	// asking is for askOthers, which sets compared. compared is closed when the other addresses have been compared.
	asking   sync.Once
	compared chan struct{}
	// split is the error of all calls, once two addresses belong to two clusters.
	split atomic.Pointer[ids.ReplyError]
}

// request returns the line that asks a node for its cluster.
func (c *cluster) request() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace("WORKER "+c.wanted) + "\n"
}

// check returns an error unless line is the reply of a node of the cluster. comparing: the addresses of the client are
// compared, so that a node of another cluster ends all calls.
func (c *cluster) check(addr, line string, comparing bool) error {
	fields := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	name, uuid := fields["cluster"], fields["cluster_uuid"]
	if e := replies.Parse(addr, line); strings.HasPrefix(line, "-") && e.Code != ids.WRONGNODE && e.Code != ids.ERR {
		return e
	} else if uuid == "" || strings.HasPrefix(line, "-") && e.Code != ids.WRONGNODE {
		return fmt.Errorf("%s: %.60q: %w", addr, line, errReply)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case uuid == "none":
		e := *replies.ErrNoCluster
		e.Addr = addr
		return &e
	case strings.HasPrefix(line, "-"), c.uuid != "" && uuid != c.uuid:
		ours := c.wanted
		if c.uuid != "" {
			ours = inWords(c.name, c.uuid)
		}
		if comparing {
			c.split.Store(otherCluster(addr, "the addresses belong to two clusters: %s to %s and %s to %s. Give nodes "+
				"of one cluster, or name it with Config.Cluster", c.addr, ours, addr, inWords(name, uuid)))
		}
		return otherCluster(addr, "this node belongs to cluster %s, not to %s. Correct the addresses",
			inWords(name, uuid), ours)
	}
	c.name, c.uuid, c.wanted, c.addr = name, uuid, uuid, addr
	return nil
}

func inWords(name, uuid string) string { return fmt.Sprintf("%s (%s)", name, uuid) }

func otherCluster(addr, format string, args ...any) *ids.ReplyError {
	return &ids.ReplyError{Addr: addr, Code: ids.WRONGNODE,
		Text: "reason=" + replies.OtherCluster + " " + fmt.Sprintf(format, args...)}
}

// compareTime is the time in which the other addresses are asked for their cluster. One that takes longer, or that has
// failed, is compared when it is first used.
const compareTime = 500 * time.Millisecond

// compare blocks until the other addresses have said which cluster they belong to, for half of the job's time at most.
// The first node has answered: its reply waits for that, and so do those that come meanwhile.
func (c *Client) compare(j *job) {
	if len(c.nodes) == 1 || c.cfg.Cluster != "" {
		return
	}
	c.cluster.asking.Do(func() { c.askOthers(j.node) })
	select {
	case <-c.cluster.compared:
		return
	default:
	}
	late := time.NewTimer(j.share / 2)
	defer late.Stop()
	select {
	case <-c.cluster.compared:
	case <-late.C:
	}
}

// askOthers starts to ask the nodes beside the first one for their cluster, on connections of their own. Those that
// have failed are left out, unless they have said that they are of another one.
func (c *Client) askOthers(first *node) {
	c.cluster.compared = make(chan struct{})
	deadline := time.Now().Add(compareTime)
	var left atomic.Int32
	left.Store(1)
	end := func() {
		if left.Add(-1) == 0 {
			close(c.cluster.compared)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n == first || !n.healthy() && code(n.last) != ids.WRONGNODE {
			continue
		}
		left.Add(1)
		c.start(func(ctx context.Context) {
			defer end()
			if conn, err := c.dial(ctx, n, deadline); err == nil {
				defer conn.close()
				_ = conn.meet(deadline) // an answer of another cluster is in cluster.split
			}
		})
	}
	end()
}

// checkCluster returns an error if a word can be neither the name nor the UUID of a cluster.
func checkCluster(word string) error {
	if len(word) > 64 || strings.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._-", r)
	}) {
		return errors.New("client: Config.Cluster must be a name or a UUID: 1 to 64 letters, digits and . _ -")
	}
	return nil
}
