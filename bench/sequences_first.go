//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/flaked/flaked/seqstore"
)

// FirstUse is what clients wait when a name is used for the first time on a node. Other is the p99 of another
// connection meanwhile, and Quiet the p99 of that connection when nobody else asks.
type FirstUse struct {
	Names              string
	Median, Max        float64 // ms
	OtherP99, QuietP99 float64 // us
}

// firstNames is the number of names of each kind.
const firstNames = 200

// measureFirst measures the first use of names that exist, and of names that a template creates.
func (s *Sequences) measureFirst(ctx context.Context, f *farm, p *process) error {
	err := f.operate(ctx, p, func(o seqstore.Operator) error {
		for n := range firstNames {
			if _, err := o.Create(ctx, definition(fmt.Sprintf("cold:%d", n))); err != nil {
				return err
			}
		}
		_, err := o.Create(ctx, definition("made:*"))
		return err
	})
	if err != nil {
		return err
	}
	// The node believes for 2 s that it knows all templates.
	if err := awaitValue(ctx, p.tcp, "made:first"); err != nil {
		return err
	}
	for _, kind := range []struct{ names, prefix string }{{"created before", "cold:"}, {"created by a template", "made:"}} {
		quiet, err := watch(ctx, p.tcp, func() error { return pace(ctx, func(int) error { return nil }) })
		if err != nil {
			return err
		}
		var waits []float64
		other, err := watch(ctx, p.tcp, func() error {
			waits, err = firstUses(ctx, p.tcp, kind.prefix)
			return err
		})
		if err != nil {
			return err
		}
		slices.Sort(waits)
		s.First = append(s.First, FirstUse{kind.names, quantile(waits, 0.5) / 1e3, waits[len(waits)-1] / 1e3, quantile(other, 0.99), quantile(quiet, 0.99)})
		fmt.Printf("first use: %+v\n", s.First[len(s.First)-1])
	}
	return nil
}

// pace calls do for each name, one every 20 ms: a node looks up 100 unknown names in a second.
func pace(ctx context.Context, do func(n int) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := range firstNames {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// firstUses uses each name once, and returns the waits in us.
func firstUses(ctx context.Context, address, prefix string) (waits []float64, err error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	return waits, pace(ctx, func(n int) error {
		wait, err := exchange(c, in, fmt.Sprintf("NEXT %s%d\n", prefix, n))
		waits = append(waits, wait)
		return err
	})
}

// exchange sends one request, and returns how long the reply took in us.
func exchange(c net.Conn, in *bufio.Reader, request string) (float64, error) {
	began := time.Now()
	_ = c.SetDeadline(began.Add(10 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return 0, err
	}
	reply, err := in.ReadString('\n')
	if err == nil && reply[0] == '-' {
		err = fmt.Errorf("%q: %q", request, reply)
	}
	return float64(time.Since(began).Nanoseconds()) / 1e3, err
}

// watch asks for a value about every millisecond on a connection of its own while do runs. It returns the waits in
// us, in ascending order.
func watch(ctx context.Context, address string, do func() error) (waits []float64, err error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			slices.Sort(waits)
			return waits, err
		case <-tick.C:
			wait, err := exchange(c, in, "NEXT "+steadySequence+"\n")
			if err != nil {
				return nil, err
			}
			waits = append(waits, wait)
		}
	}
}

// quantile returns the value below which a share q of the sorted values lies, 0 if there is none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
