//go:build linux

package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/harness"
)

const (
	pace     = 10 * time.Millisecond
	attempt  = 500 * time.Millisecond // how long a client of the Service waits for one answer
	patience = 5 * time.Second        // how long all clients try before they call it a refused ID
	numbers  = "order"                // a sequence in segments
	ticks    = "ticks"                // an ordered sequence
)

// clients ask all the time, as the documents say: a client of the Service opens a new connection when a node refuses or
// does not answer.
type clients struct {
	site *harness.Site
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	kinds   map[string]*tally
	kindsIn []string
}

// tally counts the answers to the clients of one kind since the last scenario.
type tally struct {
	answered int
	again    int // tries that failed
	longest  time.Duration
	refused  []string
}

// ask starts a client. next returns when it has an ID or value, or after patience, with the number of tries that
// failed.
func (c *clients) ask(kind string, next func(context.Context) (int, error)) {
	ctx := c.ctx
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[kind] == nil {
		c.kinds[kind] = &tally{}
		c.kindsIn = append(c.kindsIn, kind)
	}
	c.wg.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			failed, err := next(ctx)
			c.note(kind, time.Since(began), failed, err)
			<-tick.C
		}
	})
}

func (c *clients) note(kind string, took time.Duration, failed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[kind]
	switch {
	case err == nil:
		k.answered++
	case c.ctx.Err() == nil:
		k.refused = append(k.refused, err.Error())
	}
	k.again += failed
	k.longest = max(k.longest, took)
}

func newClients(site *harness.Site) *clients {
	c := &clients{site: site, kinds: map[string]*tally{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	site.T.Cleanup(c.end)
	return c
}

// through starts clients of a Service.
func (c *clients) through(service string) {
	n := c.site.Node()
	n.Listen = service
	for range 2 {
		c.ask("Service", c.plain(n, time.Hour))
		c.ask("Service, new connections", c.plain(n, 0))
	}
}

// plain returns a client of an address, which keeps a connection for age at most.
func (c *clients) plain(n *harness.Node, age time.Duration) func(context.Context) (int, error) {
	conn := &harness.Client{Node: n, Timeout: attempt}
	opened := time.Now()
	return func(ctx context.Context) (int, error) {
		if time.Since(opened) > age {
			conn.Close()
			opened = time.Now()
		}
		return insist(ctx, func() error {
			_, err := conn.Get(1)
			if err != nil {
				conn.Close()
			}
			return err
		})
	}
}

// insist repeats a request until it is answered.
func insist(ctx context.Context, ask func() error) (failed int, err error) {
	for began := time.Now(); ; failed++ {
		if err = ask(); err == nil || ctx.Err() != nil || time.Since(began) > patience {
			return failed, err
		}
		harness.Pass(ctx, pace)
	}
}

// knowing starts Go clients, which should know the address of each node, and are counted as kind. They also ask for
// values of sequences.
func (c *clients) knowing(kind string, cfg client.Config, sequences ...string) {
	site, all := c.site, c.site.Node()
	cfg.Spread, cfg.Patience = true, patience
	lib, err := client.New(cfg)
	must(site.T, err)
	for range 2 {
		c.ask(kind, func(ctx context.Context) (int, error) {
			a := harness.Answer{Node: uint16(all.ID), Asked: site.IDs.Now()}
			id, err := lib.Next(ctx)
			if err == nil {
				a.Got = site.IDs.Now()
				site.IDs.Record(a, id)
			}
			return 0, err
		})
	}
	for _, name := range sequences {
		// Its nodes are not told apart, so of the sequence in segments only that no value comes twice is judged.
		site.Values.Made(name, map[string]string{numbers: "scattered", ticks: "ordered"}[name])
		sequence := lib.Sequence(name)
		c.ask(kind+", values of "+name, func(ctx context.Context) (int, error) {
			r := order.Request{Name: name, Node: all.ID, Sent: site.IDs.Now()}
			v, err := sequence.Next(ctx)
			if err == nil {
				r.First, r.Last, r.Answered = v, v, site.IDs.Now()
				site.Values.Add(r)
			}
			return 0, err
		})
	}
	context.AfterFunc(c.ctx, lib.Close)
}

// end stops the clients.
func (c *clients) end() { c.stop(); c.wg.Wait() }

// seen returns what the clients saw since it was called last, and the number of refused IDs and values.
func (c *clients) seen() (text string, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, kind := range c.kindsIn {
		k := c.kinds[kind]
		part := fmt.Sprintf("%s: %d answers, %d tries failed, the longest took %d ms", kind, k.answered, k.again, k.longest.Milliseconds())
		if n := len(k.refused); n > 0 {
			part += fmt.Sprintf(", %d refused: %s", n, k.refused[0])
		}
		refused += len(k.refused)
		parts = append(parts, part)
		*k = tally{}
	}
	return strings.Join(parts, "\n    "), refused
}
