package coordinator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// zkHosts tells go-zookeeper whom to dial next. Its own provider resolves the
// names once, and gives up when a single one does not resolve; the addresses
// of pods change, and a server that is gone takes its name with it. This one
// resolves all names again for each round, tries the addresses in random
// order, and passes a name that does not resolve over.
//
// What Next returns is a label, for the library only hands it to the dialer:
// two names may share an address, and TLS must check the one that was meant.
type zkHosts struct {
	ctx     context.Context // done when the client is being closed
	names   []string        // "host:port"
	lookup  func(ctx context.Context, host string) ([]string, error)
	timeout time.Duration // for the lookups of one round

	// Next, the dialer and Connected are all called by the library's one loop.
	round   []zkTarget // what is left of this round
	current zkTarget
	known   map[string][]string // the last answer per name, for when there is none
	started bool                // the first round needs no pause before it
	settled *time.Timer         // fires when the connection made in this round has lasted; nil before
}

type zkTarget struct {
	name string // "host:port" as configured
	addr string // "ip:port"; "" when the name did not resolve
	err  error  // why not
}

func (t zkTarget) label() string {
	if t.addr == t.name || t.addr == "" {
		return t.name
	}
	return t.name + "(" + t.addr + ")"
}

// shortLived is the life below which a connection counts as a failed attempt.
const shortLived = time.Second

// Init is part of zk.HostProvider. The names are those of the configuration,
// not these, which the library has been over.
func (h *zkHosts) Init([]string) error { return nil }

// Len is part of zk.HostProvider.
func (h *zkHosts) Len() int { return len(h.names) }

// Next is part of zk.HostProvider. The second result makes the library wait
// for a second and fail what is queued; it also is the only place where its
// dial loop sees that it has been closed.
func (h *zkHosts) Next() (string, bool) {
	if h.ctx.Err() != nil {
		return h.names[0], true
	}
	pause := false
	if h.settled != nil || len(h.round) == 0 {
		pause = h.started && !h.lasted()
		h.started, h.settled = true, nil
		h.round = h.order(h.resolve())
	}
	h.current, h.round = h.round[0], h.round[1:]
	return h.current.label(), pause
}

// lasted tells whether the round now over led to a connection worth the name.
// A server that accepts and hangs up would else be dialled without a pause.
func (h *zkHosts) lasted() bool {
	if h.settled == nil {
		return false
	}
	select {
	case <-h.settled.C:
		return true
	default:
		return false
	}
}

// Connected is part of zk.HostProvider.
func (h *zkHosts) Connected() { h.settled = time.NewTimer(shortLived) }

// order shuffles, and puts the address that has just been lost last.
func (h *zkHosts) order(found []zkTarget) []zkTarget {
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	if i := slices.Index(found, h.current); i >= 0 {
		found = append(slices.Delete(found, i, i+1), h.current)
	}
	return found
}

func (h *zkHosts) resolve() []zkTarget {
	ctx, cancel := context.WithTimeout(h.ctx, h.timeout)
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
