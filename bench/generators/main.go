//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/worker"
)

type options struct {
	figures.Options
	only string
}

func main() {
	var o options
	o.Register(500*time.Millisecond, "bin/generators.json")
	flag.StringVar(&o.only, "only", "", "measure only one of the cases: ceiling, free, advance")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "generators:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	r, err := figures.Obtain(o.Options, func() (*Results, error) { return measureAll(o) })
	if err != nil {
		return err
	}
	text := r.tables()
	fmt.Print("\n", text)
	if o.Docs == "" {
		return nil
	}
	return figures.Between(o.Docs, "generators", text)
}

// Names of the cases.
const (
	ceilingCase = "ceiling"
	freeCase    = "free"
	advanceCase = "advance"
	pacedCase   = "advance, 50,000 a second"
	burstCase   = "advance, 65,536 at once"
)

// The numbers of goroutines that draw at once.
var (
	ceilingGoroutines = []int{1, 2, 8}
	freeGoroutines    = []int{1, 2}
)

// pacedRate is the load, in IDs a second, at which latency and age are measured.
const pacedRate = 50_000

func measureAll(o options) (*Results, error) {
	r := &Results{
		When: time.Now().UTC().Truncate(time.Second), Machine: figures.ThisMachine(), Rounds: o.Rounds,
		Seconds: o.Duration.Seconds(), Versions: versions(),
	}
	b := newBuffers()
	for round := range o.Rounds {
		for _, c := range []struct {
			name       string
			who        []Contender
			goroutines []int
			d          time.Duration
		}{
			{ceilingCase, bound(), ceilingGoroutines, o.Duration},
			{freeCase, free(), freeGoroutines, o.Duration / 2},
			{advanceCase, advance(), freeGoroutines, o.Duration},
		} {
			if o.only != "" && o.only != c.name {
				continue
			}
			for _, n := range c.goroutines {
				for i := range c.who {
					// Each round begins with another contender, so that none is always the first.
					who := c.who[(i+round)%len(c.who)]
					if err := r.with(who, c.name, round, func(s source) Sample { return b.flatOut(s, n, c.d) }); err != nil {
						return nil, err
					}
				}
			}
		}
		if o.only != "" && o.only != advanceCase {
			continue
		}
		for _, who := range oneByOne() {
			err := errors.Join(
				r.with(who, pacedCase, round, func(s source) Sample { return paced(s, pacedRate, 2*o.Duration) }),
				r.with(who, burstCase, round, func(s source) Sample { return burst(s, ringSize) }))
			if err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// advance returns plain generators and one with IDs made in advance.
func advance() []Contender {
	return []Contender{
		ours(flakedNext, worker.Leaf(), 1),
		ours(flakedReserve, worker.Leaf(), 64),
		inAdvance(worker.Leaf()),
	}
}

// oneByOne returns the contenders for loads that ask for one ID at a time. One of them
// borrows, so that it answers a burst without IDs made in advance.
func oneByOne() []Contender {
	return []Contender{
		ours(flakedNext, worker.Leaf(), 1),
		borrowing(flakedBorrow, worker.Leaf(), 1, 100*time.Millisecond),
		inAdvance(worker.Leaf()),
	}
}

// with starts a contender, measures it and stops it.
func (r *Results) with(who Contender, name string, round int, measure func(source) Sample) error {
	s, err := who.start()
	if err != nil {
		return fmt.Errorf("%s: %w", who.Name, err)
	}
	if s.stop != nil {
		defer s.stop()
	}
	// A contender with a buffer fills it in this pause. One that ran ahead of the clock in
	// the round before is no longer ahead.
	time.Sleep(50 * time.Millisecond)
	m := measure(s)
	m.Case, m.Who, m.Round = name, who.Name, round
	r.Samples = append(r.Samples, m)
	fmt.Printf("%d: %s, %s, %s: %s a second, %.1f ns of CPU each, %d ms ahead, %d twice, %d backward\n", round, name, m.Who, goroutines(m.Goroutines),
		figures.Thousands(rate(m)), cpuNs(m), m.AheadMs, m.Twice, m.Backward)
	return nil
}

// versions returns the versions of the modules in this program, by module path.
func versions() map[string]string {
	v := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		v[m.Path] = m.Version
		if m.Replace != nil {
			v[m.Path] = strings.TrimSpace(m.Replace.Version)
		}
	}
	return v
}
