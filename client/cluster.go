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
	// asking lets one connWorker begin the comparison. compared is nil before, and closed when the other addresses have
	// been compared.
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
func (p *pool) compare(j *job) {
	if len(p.nodes) == 1 || p.cfg.Cluster != "" {
		return
	}
	p.cluster.asking.Do(func() { p.askOthers(j.node) })
	select {
	case <-p.cluster.compared:
		return
	default:
	}
	late := time.NewTimer(j.share / 2)
	defer late.Stop()
	select {
	case <-p.cluster.compared:
	case <-late.C:
	}
}

// askOthers starts to ask the nodes beside the first one for their cluster, on connections of their own. Those that
// have failed are left out, unless they have said that they are of another one.
func (p *pool) askOthers(first *node) {
	p.cluster.compared = make(chan struct{})
	deadline := time.Now().Add(compareTime)
	var left atomic.Int32
	left.Store(1)
	end := func() {
		if left.Add(-1) == 0 {
			close(p.cluster.compared)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n == first || !n.healthy() && code(n.last) != ids.WRONGNODE {
			continue
		}
		left.Add(1)
		p.start(func(ctx context.Context) {
			defer end()
			if err := p.askCluster(ctx, n, deadline); code(err) == ids.WRONGNODE {
				p.cluster.split.Store(twoClusters(first.addr, err))
			}
		})
	}
	end()
}

// askCluster asks a node for its cluster alone. It returns nil if that is the wanted one.
func (p *pool) askCluster(ctx context.Context, n *node, deadline time.Time) error {
	conn, err := p.dial(ctx, n, deadline)
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
