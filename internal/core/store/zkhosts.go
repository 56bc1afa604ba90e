package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// zkHosts returns the addresses to dial, round by round. It resolves all names again for
// each round, because the addresses of pods change. The order is random. If a name does not
// resolve, its last addresses are used. Without a last address, its target holds the error.
type zkHosts struct {
	names  []string // "host:port"
	lookup func(ctx context.Context, host string) ([]string, error)
	known  map[string][]string // last answer per name, used if a lookup fails
	last   zkTarget            // address of the last connection
}

// zkTarget is one address of a name. Two names may share an address, and TLS must check the
// configured name, so a target holds both.
type zkTarget struct {
	name string // "host:port" as configured
	addr string // "ip:port"; "" when the name did not resolve
	err  error  // why not
}

func newHosts(names []string) *zkHosts {
	return &zkHosts{names: names, lookup: net.DefaultResolver.LookupHost, known: make(map[string][]string)}
}

func (t zkTarget) label() string {
	if t.addr == t.name || t.addr == "" {
		return t.name
	}
	return t.name + "(" + t.addr + ")"
}

// round returns the addresses to try. Their order is random, but the address of the last
// connection comes last. The lookups take no longer than timeout.
func (h *zkHosts) round(ctx context.Context, timeout time.Duration) []zkTarget {
	found := h.resolve(ctx, timeout)
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	if i := slices.Index(found, h.last); i >= 0 {
		found = append(slices.Delete(found, i, i+1), h.last)
	}
	return found
}

func (h *zkHosts) resolve(ctx context.Context, timeout time.Duration) []zkTarget {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make([][]string, len(h.names))
	errs := make([]error, len(h.names))
	var wg sync.WaitGroup
	for i, name := range h.names {
		wg.Go(func() {
			host, _, _ := net.SplitHostPort(name) // made by ParseConnect
			answers[i], errs[i] = h.lookup(ctx, host)
		})
	}
	wg.Wait()

	var found []zkTarget
	for i, name := range h.names {
		addrs := answers[i]
		if errs[i] != nil || len(addrs) == 0 {
			addrs = h.known[name] // DNS down, ZooKeeper up: the old addresses may do
		} else {
			h.known[name] = addrs
		}
		if len(addrs) == 0 {
			found = append(found, zkTarget{name: name, err: fmt.Errorf("look up %s: %w", name, errs[i])})
		}
		_, port, _ := net.SplitHostPort(name)
		for _, a := range addrs {
			found = append(found, zkTarget{name: name, addr: net.JoinHostPort(a, port)})
		}
	}
	return found
}
