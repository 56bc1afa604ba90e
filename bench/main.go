//go:build linux

package main

import (
	"context"
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
	figures.Options
	only         string
	serverCore   int
	clientCore   int
	bin          string
	before       string
	who          string
	report, plot string
}

func main() {
	var o options
	o.Register(2*time.Second, "bin/bench.json")
	flag.StringVar(&o.only, "only", "", "measure only cases whose names contain one of these texts, separated by commas (greedy needs no ZooKeeper; sequences alone measures named sequences)")
	flag.IntVar(&o.serverCore, "server-core", 0, "CPU core of the servers")
	flag.IntVar(&o.clientCore, "client-core", 1, "CPU core of the generator")
	flag.StringVar(&o.bin, "bin", "bin", "directory of flaked and the floors")
	flag.StringVar(&o.who, "who", "", "measure only servers whose names contain one of these texts, separated by semicolons")
	flag.StringVar(&o.before, "before", "", "path of another flaked to measure beside the one in -bin")
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
	results, err := figures.Obtain(o.Options, func() (*Results, error) { return measureAll(ctx, o) })
	if err != nil {
		return err
	}
	if err := results.write(o); err != nil {
		return err
	}
	if results.Sequences != nil {
		fmt.Print("\n", results.sequencesTables())
		return nil
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
		{"sequences", r.sequencesTables(), r.Sequences != nil},
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
		if o.Docs == "" || !b.measured {
			continue
		}
		if err := figures.Between(o.Docs, b.name, b.text); err != nil {
			return err
		}
		fmt.Println("wrote", o.Docs)
	}
	return nil
}
