//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/zkstore"
)

// Strict is one strict sequence that three nodes issue, on three ZooKeepers. Conns are all connections, each with one
// request for one number at a time. Write is the time of one write to ZooKeeper by a client that does nothing
// else, meanwhile and while no node is asked.
type Strict struct {
	Nodes, Conns, Round       int     // Nodes is how many nodes the connections are to
	Rate                      float64 // numbers a second
	P50, P99                  float64 // ms
	WriteP50, WriteP99        float64 // ms
	QuietWriteP50, QuietWrite float64 // ms; QuietWrite is the p99
	Commits                   float64 // writes of ZooKeeper a second, all together
	Refused                   int
}

const (
	strictNodes    = 3
	strictSequence = "invoice"
)

// strictConns are the numbers of connections that are measured, each to one node and to all.
var strictConns = []int{3, 30, 300}

// measureStrict measures real nodes on an ensemble of three.
func (s *Sequences) measureStrict(ctx context.Context, f *farm) (err error) {
	dir, err := os.MkdirTemp("", "flaked-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	zk, err := local.StartEnsemble(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.StopZooKeeper(dir)) }()
	nodes, err := f.startCluster(ctx, zk, dir, strictNodes)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range nodes {
			f.stop(p)
		}
	}()
	store, err := connect(ctx, zk, "strict")
	if err != nil {
		return err
	}
	defer store.Close()
	o := seqstore.Operator{Store: store, Now: func() int64 { return time.Now().UnixMilli() }, By: "bench"}
	if err := awaitState(ctx, o); err != nil {
		return err
	}
	d := definition(strictSequence)
	d.Mode = seqstore.Strict
	if _, err := o.Create(ctx, d); err != nil {
		return err
	}
	for _, p := range nodes {
		if err := awaitValue(ctx, p.tcp, strictSequence); err != nil {
			return err
		}
	}
	for round := range f.o.Rounds {
		for _, conns := range strictConns {
			for _, asked := range []int{1, strictNodes} {
				one, err := measureStrictOnce(ctx, f, store, zk, nodes[:asked], conns)
				if err != nil {
					return err
				}
				one.Round = round
				s.Strict = append(s.Strict, one)
				fmt.Printf("strict: %+v\n", one)
			}
		}
	}
	return nil
}

// startCluster starts nodes of one cluster, and waits until all are ready. They share the cores with ZooKeeper.
func (f *farm) startCluster(ctx context.Context, zk, dir string, n int) (nodes []*process, err error) {
	for k := range n {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("strict-%d", k)
		p := &process{name: name, tcp: fmt.Sprintf("127.0.0.1:%d", port), log: filepath.Join(dir, name+".log")}
		p.Process, err = local.Start(p.log, f.flaked(flaked), "serve", "--zk", zk, "--bootstrap", "--cluster", "strict", "--confirm-time", "6s",
			"--admin", "off", "--log-level", "warn", "--listen", p.tcp, "--state-dir", filepath.Join(dir, name+".state"))
		if err != nil {
			return nil, err
		}
		f.running = append(f.running, p)
		nodes = append(nodes, p)
	}
	for _, p := range nodes {
		if err := f.await(ctx, p, true); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func measureStrictOnce(ctx context.Context, f *farm, store zkstore.Store, zk string, nodes []*process, conns int) (Strict, error) {
	one := Strict{Nodes: len(nodes), Conns: conns}
	quiet, err := timeWrites(ctx, store, f.o.Duration)
	if err != nil {
		return one, err
	}
	one.QuietWriteP50, one.QuietWrite = quantile(quiet, 0.5), quantile(quiet, 0.99)
	first, _, _ := strings.Cut(zk, ",")
	before, err := zxid(first)
	if err != nil {
		return one, err
	}
	waits := make([][]float64, conns)
	refused := make([]int, conns)
	group, asking := errgroup.WithContext(ctx)
	asking, stop := context.WithTimeout(asking, f.o.Duration)
	defer stop()
	for k := range conns {
		group.Go(func() (err error) {
			waits[k], refused[k], err = askOneByOne(asking, nodes[k%len(nodes)].tcp)
			return err
		})
	}
	var writes []float64
	group.Go(func() (err error) {
		writes, err = timeWrites(ctx, store, f.o.Duration)
		return err
	})
	if err := group.Wait(); err != nil {
		return one, err
	}
	after, err := zxid(first)
	all := slices.Concat(waits...)
	slices.Sort(all)
	seconds := f.o.Duration.Seconds()
	one.Rate, one.P50, one.P99 = float64(len(all))/seconds, quantile(all, 0.5), quantile(all, 0.99)
	one.WriteP50, one.WriteP99 = quantile(writes, 0.5), quantile(writes, 0.99)
	one.Commits = float64(after-before)/seconds - float64(len(writes))/seconds
	for _, n := range refused {
		one.Refused += n
	}
	return one, err
}

// askOneByOne asks a node for one number after another until ctx ends. It returns the waits in ms.
func askOneByOne(ctx context.Context, address string) (waits []float64, refused int, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := io.WriteString(conn, "NEXT "+strictSequence+"\n"); err != nil {
			return nil, 0, err
		}
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return nil, 0, err
		case strings.HasPrefix(line, "-"):
			refused++
		default:
			waits = append(waits, time.Since(began).Seconds()*1e3)
		}
	}
	return waits, refused, nil
}

// timeWrites writes a small znode again and again, and returns the sorted times in ms.
func timeWrites(ctx context.Context, store zkstore.Store, d time.Duration) (times []float64, err error) {
	const path = "/bench"
	if err := store.EnsureRoot(ctx, path); err != nil {
		return nil, err
	}
	data := make([]byte, 400)
	for end := time.Now().Add(d); time.Now().Before(end); {
		began := time.Now()
		if _, err := store.Set(ctx, path, data, zkstore.AnyVersion); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began).Seconds()*1e3)
	}
	slices.Sort(times)
	return times, nil
}
