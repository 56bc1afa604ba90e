//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/figures"
)

// options holds the command line's flags.
type options struct {
	rounds       int
	duration     time.Duration
	only         string
	serverCore   int
	clientCore   int
	bin          string
	before       string
	who          string
	raw          string
	from         string
	docs, report string
	plot         string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "how often each case is measured")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "how long, each time")
	flag.StringVar(&o.only, "only", "", "measure the cases whose names hold one of these texts, separated by commas; greedy needs no ZooKeeper")
	flag.IntVar(&o.serverCore, "server-core", 0, "the core of the servers")
	flag.IntVar(&o.clientCore, "client-core", 1, "the core of the generator")
	flag.StringVar(&o.bin, "bin", "bin", "where flaked and the floors are")
	flag.StringVar(&o.who, "who", "", "measure the servers whose names hold one of these texts, separated by semicolons")
	flag.StringVar(&o.before, "before", "", "another flaked, by its path, to measure beside the one in -bin")
	flag.StringVar(&o.raw, "raw", "bin/bench.json", "write the raw results here")
	flag.StringVar(&o.from, "from", "", "measure nothing: write tables from the raw results in this file")
	flag.StringVar(&o.docs, "docs", "docs/performance.md", "write tables between this file's markers; empty: do not")
	flag.StringVar(&o.report, "report", "bench/REPORT.md", "write what was wanted and what was reached; empty: do not")
	flag.StringVar(&o.plot, "plot", "docs/performance.svg", "write the plot; empty: do not")
	attack := flag.String("attack", "", "be the bad client; the program calls itself so")
	address := flag.String("address", "", "of the server that it attacks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *attack != "" {
		if err := doAttack(ctx, Attack(*attack), *address); err != nil {
			fmt.Fprintln(os.Stderr, "bench: the attack:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	results, err := obtain(ctx, o)
	if err != nil {
		return err
	}
	if err := results.write(o); err != nil {
		return err
	}
	fmt.Print("\n", results.verdictTable())
	return nil
}

// write writes the report, the plot and the tables of the cases that were measured. A run
// without any of cases() leaves their report, plot and tables as they are.
func (r *Results) write(o options) error {
	files := []struct{ path, text string }{{o.report, r.report()}, {o.plot, r.plot()}}
	blocks := []struct {
		name, text string
		measured   bool
	}{
		{"bench", r.tables(filepath.Base(o.plot)), len(r.Runs) > 0},
		{"greedy", r.greedyTable(), len(r.Greedy) > 0},
	}
	if len(r.Runs) == 0 {
		files = nil
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if err := os.WriteFile(f.path, []byte(f.text), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", f.path)
	}
	for _, b := range blocks {
		if o.docs == "" || !b.measured {
			continue
		}
		if err := figures.Between(o.docs, b.name, b.text); err != nil {
			return err
		}
		fmt.Println("wrote", o.docs)
	}
	return nil
}

// obtain measures and writes the raw results, or reads those of an earlier run (-from).
func obtain(ctx context.Context, o options) (*Results, error) {
	if o.from != "" {
		text, err := os.ReadFile(o.from)
		if err != nil {
			return nil, err
		}
		var r Results
		return &r, json.Unmarshal(text, &r)
	}
	if o.rounds < 1 || o.duration <= 0 {
		return nil, errors.New("rounds and duration are above zero")
	}
	r, err := measureAll(ctx, o)
	if r != nil {
		text, jsonErr := json.MarshalIndent(r, "", " ")
		if err = errors.Join(err, jsonErr, os.WriteFile(o.raw, text, 0o644)); err == nil {
			fmt.Println("wrote", o.raw)
		}
	}
	return r, err
}
