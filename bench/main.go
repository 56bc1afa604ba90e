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
	flag.IntVar(&o.rounds, "rounds", 5, "rounds per case")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "duration of each measurement")
	flag.StringVar(&o.only, "only", "", "measure only cases whose names contain one of these texts, separated by commas (greedy needs no ZooKeeper)")
	flag.IntVar(&o.serverCore, "server-core", 0, "CPU core of the servers")
	flag.IntVar(&o.clientCore, "client-core", 1, "CPU core of the generator")
	flag.StringVar(&o.bin, "bin", "bin", "directory of flaked and the floors")
	flag.StringVar(&o.who, "who", "", "measure only servers whose names contain one of these texts, separated by semicolons")
	flag.StringVar(&o.before, "before", "", "path of another flaked to measure beside the one in -bin")
	flag.StringVar(&o.raw, "raw", "bin/bench.json", "write the raw results here")
	flag.StringVar(&o.from, "from", "", "measure nothing and write the tables from the raw results in this file")
	flag.StringVar(&o.docs, "docs", "docs/performance.md", "write the tables between the markers in this file (empty: none)")
	flag.StringVar(&o.report, "report", "bench/REPORT.md", "write the report to this file (empty: none)")
	flag.StringVar(&o.plot, "plot", "docs/performance.svg", "write the plot to this file (empty: none)")
	attack := flag.String("attack", "", "internal: run as this bad client")
	address := flag.String("address", "", "internal: address of the server to attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *attack != "" {
		if err := doAttack(ctx, Attack(*attack), *address); err != nil {
			fmt.Fprintln(os.Stderr, "bench: attack:", err)
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
		return nil, errors.New("-rounds and -duration must be positive")
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
