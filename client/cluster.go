package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
)

// cluster is the cluster that all connections of a client want, and the comparison of its addresses.
type cluster struct {
	*dialog.Cluster
	// asking is for askOthers, which sets compared. compared is closed when the other addresses have been compared.
	asking   sync.Once
	compared chan struct{}
	// split is the error of all calls, once two addresses belong to two clusters.
	split atomic.Pointer[ids.ReplyError]
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
			if err := c.askCluster(ctx, n, deadline); code(err) == ids.WRONGNODE {
				c.cluster.split.Store(twoClusters(first.addr, err))
			}
		})
	}
	end()
}

// askCluster asks a node for its cluster alone. It returns nil if that is the wanted one.
func (c *Client) askCluster(ctx context.Context, n *node, deadline time.Time) error {
	conn, err := c.dial(ctx, n, deadline)
	if err != nil {
		return err
	}
	defer conn.close()
	return conn.send(deadline)
}

// twoClusters returns the error of all calls: a node belongs to another cluster than the first one, by its error.
func twoClusters(first string, err error) *ids.ReplyError {
	e, _ := errors.AsType[*ids.ReplyError](err)
	return &ids.ReplyError{Addr: e.Addr, Code: e.Code, Text: strings.TrimSuffix(e.Text, dialog.CorrectAddresses) +
		" like " + first + ". The addresses belong to two clusters: give those of one, or name it with Config.Cluster"}
}
