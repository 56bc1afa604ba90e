//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/admin"
	"github.com/flaked/flaked/worker"
)

// event is a line that the process with the nodes prints.
type event struct {
	// Holding is the number of nodes that have a worker, and Page the address of the first node's
	// page. If one of them is set, nothing else is.
	Holding int    `json:"holding,omitempty"`
	Page    string `json:"page,omitempty"`

	Node   int         `json:"node"`
	Worker int         `json:"worker"`
	IDs    []worker.ID `json:"ids,omitempty"`
	Ended  string      `json:"ended,omitempty"` // why the node ended. Then it has no IDs
}

// takeEach is the number of IDs that the harness draws from each node when it is ready. The harness
// compares them with the IDs of all other nodes and starts.
const takeEach = 64

// host is the process with all nodes. It prints an event for each that is ready or has ended.
type host struct {
	zk, cluster, dir string
	nodes            int

	mu  sync.Mutex // for out
	out *json.Encoder
}

// run starts all nodes at once, and waits until ctx is done. It does not close the nodes: the
// harness kills the process.
func (h *host) run(ctx context.Context) error {
	h.out = json.NewEncoder(os.Stdout)
	var starting sync.WaitGroup
	started := make([]*flaked.Node, h.nodes)
	var first *admin.Server
	errs := make(chan error, h.nodes)
	for i := range started {
		starting.Go(func() {
			var err error
			started[i], err = flaked.Start(flaked.Config{
				ZooKeeper: h.zk, Cluster: h.cluster, Bootstrap: true,
				StateDir: filepath.Join(h.dir, h.cluster, fmt.Sprint(i)), Name: fmt.Sprintf("n%d", i),
			})
			if err != nil {
				errs <- err
				return
			}
			page, err := admin.New(admin.Of(started[i]))
			if err != nil {
				errs <- err
				return
			}
			if i == 0 {
				first = page
			} else {
				go page.Run(ctx) // it reads what it would show, as a node with an admin port does
			}
			go h.follow(ctx, i, started[i])
		})
	}
	starting.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	go h.count(ctx, started)
	return h.showPage(ctx, first)
}

// showPage serves the status page and the metrics of a node until ctx is done, and prints where.
func (h *host) showPage(ctx context.Context, page *admin.Server) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.print(event{Page: l.Addr().String()})
	return page.Serve(ctx, l)
}

// follow draws IDs from node i as soon as it is ready, and waits for its end.
func (h *host) follow(ctx context.Context, i int, n *flaked.Node) {
	e := event{Node: i}
	err := n.WaitReady(ctx)
	if err == nil {
		e.IDs, err = n.Take(ctx, takeEach)
	}
	if err != nil {
		e.Ended = err.Error()
		h.print(e)
		return
	}
	e.Worker = *n.Status()[0].Worker
	h.print(e)
	<-n.Done()
	h.print(event{Node: i, Ended: fmt.Sprint(n.Close(ctx))})
}

// count prints how many nodes have a worker until all have one.
func (h *host) count(ctx context.Context, nodes []*flaked.Node) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for before := 0; before < len(nodes); {
		holding := 0
		for _, n := range nodes {
			if n.Status()[0].Worker != nil {
				holding++
			}
		}
		if holding != before {
			h.print(event{Holding: holding})
			before = holding
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *host) print(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.out.Encode(e) // the harness that reads it has ended, and this process ends with it
}
