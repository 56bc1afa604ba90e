//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// measureAll makes all measurements that the options select. If one fails for good, it
// returns the measurements made before it together with the error.
func measureAll(ctx context.Context, o options) (*Results, error) {
	f, err := newFarm(o)
	if f != nil {
		defer f.close()
	}
	if err != nil {
		return nil, err
	}
	r := &Results{
		When: time.Now().UTC().Truncate(time.Second), Machine: figures.ThisMachine(), Rounds: o.Rounds, Seconds: o.Duration.Seconds(),
		Versions: f.versions(), Missing: map[Contender]string{},
	}
	for _, network := range networks {
		if err := r.measureNetwork(ctx, f, network); err != nil {
			return r, err
		}
	}
	if matches(o.only, ",", "idle") {
		for _, who := range []Contender{floorC, floorGo, flaked, redis, memcached} {
			if err := r.measureIdle(ctx, f, who); err != nil && r.skip(ctx, who, err) != nil {
				return r, err
			}
		}
	}
	if matches(o.only, ",", "hostile") {
		if err := r.measureHostile(ctx, f); err != nil {
			return r, err
		}
	}
	if strings.HasPrefix(o.only, sequencesCase) {
		r.Sequences = &Sequences{}
		return r, r.Sequences.measure(ctx, f, r)
	}
	if matches(o.only, ",", greedyCase) {
		return r, r.measureGreedy(ctx, f)
	}
	return r, nil
}

// measureNetwork measures all cases on one network. All servers run at the same time: those
// that get no requests sleep.
func (r *Results) measureNetwork(ctx context.Context, f *farm, network string) error {
	var todo []Case
	servers := map[Contender]*process{}
	for _, c := range f.o.chosen() {
		if c.Network == network {
			todo = append(todo, c)
			for _, who := range c.Who {
				servers[program(who)] = nil
			}
		}
	}
	for _, who := range slices.Sorted(maps.Keys(servers)) {
		p, err := f.start(ctx, who, network)
		if err != nil {
			return err
		}
		servers[who] = p
		defer f.stop(p)
	}
	for i, c := range todo {
		for round := range f.o.Rounds {
			// Each round begins with another contender, so that none is always the first.
			for j := range c.Who {
				who := c.Who[(j+round)%len(c.Who)]
				if p := servers[program(who)]; p != nil {
					if err := r.measure(ctx, f, c, who, round, p); err != nil {
						return err
					}
				}
			}
		}
		fmt.Printf("%s: case %d of %d\n", network, i+1, len(todo))
	}
	return nil
}

// measure runs the generator once.
func (r *Results) measure(ctx context.Context, f *farm, c Case, who Contender, round int, p *process) error {
	b, err := f.generate(ctx, c, who, p)
	if err != nil {
		return r.skip(ctx, who, fmt.Errorf("%s, round %d: %w", c.Name, round+1, err))
	}
	r.Runs = append(r.Runs, Run{c.Name, who, round, b})
	fmt.Printf("%-16s %-28s %12.0f/s  p50 %8.1f  p99 %8.1f us  server %3.0f %%  client %3.0f %%\n",
		c.Name, who, b.RequestsPerSecond, b.Latency.P50, b.Latency.P99, 100*busy(b), 100*clientBusy(b))
	if b.Errors.Total > 0 {
		fmt.Printf("  errors: %v\n", b.Errors.ByCode)
	}
	return nil
}

// skip notes in Missing why a measurement failed, so that a long run goes on without it. It
// returns an error only if ctx has ended.
func (r *Results) skip(ctx context.Context, who Contender, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("%s: %v\n", who, err)
	r.Missing[who] = strings.Join(strings.Fields(r.Missing[who]+" "+err.Error()), " ")
	return nil
}

func (f *farm) generate(ctx context.Context, c Case, who Contender, p *process) (Bench, error) {
	address, ok := p.at(c.Network)
	if !ok {
		return Bench{}, fmt.Errorf("the server does not listen on %s", c.Network)
	}
	duration := cmp.Or(c.Duration, f.o.Duration)
	args := append([]string{
		"-c", fmt.Sprint(f.o.clientCore), filepath.Join(f.o.bin, "flaked"), "bench", "-o", "json", "--addr", address,
		"--pid", fmt.Sprint(p.PID()), "--duration", duration.String(), "--warmup", "300ms",
	}, append(who.ask(), c.args()...)...)
	cmd := exec.CommandContext(ctx, "taskset", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var failed *exec.ExitError
	var b Bench
	// The generator also prints a report if requests failed.
	if err != nil && (!errors.As(err, &failed) || len(out) == 0) {
		return b, fmt.Errorf("%w: %s", err, said.String())
	}
	return b, json.Unmarshal(out, &b)
}

// stop ends a server before the farm closes.
func (f *farm) stop(p *process) {
	p.Stop()
	f.running = slices.DeleteFunc(f.running, func(q *process) bool { return q == p })
}

// idleConns is the number of idle connections to a server whose memory is measured.
const idleConns = 10_000

// measureIdle measures the memory of a fresh server: before it has connections, with
// idleConns of them, and after one request on each.
func (r *Results) measureIdle(ctx context.Context, f *farm, who Contender) error {
	p, err := f.start(ctx, who, "tcp")
	if err != nil {
		return err
	}
	defer f.stop(p)
	m := Idle{Who: who, Conns: idleConns, Before: int64(load.ProcessStatus(p.PID()).VmRSS)}
	conns := make([]net.Conn, 0, idleConns)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range idleConns {
		c, err := dial(p, "tcp")
		if err != nil {
			return fmt.Errorf("idle connection %d: %w", len(conns)+1, err)
		}
		conns = append(conns, c)
	}
	// Connections are accepted in order. Once the last one answers, all are accepted.
	requests := map[Contender]string{redis: "*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n", memcached: "incr x 1\r\n"}
	request, ok := requests[who]
	if !ok {
		request = "GET\n"
	}
	reply := make([]byte, 512)
	once := func(c net.Conn) error {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Write([]byte(request)); err != nil {
			return err
		}
		_, err := c.Read(reply)
		return err
	}
	if err := once(conns[len(conns)-1]); err != nil {
		return fmt.Errorf("idle connections: %w", err)
	}
	m.Connected = int64(load.ProcessStatus(p.PID()).VmRSS)
	for i, c := range conns {
		if err := once(c); err != nil {
			return fmt.Errorf("the request on idle connection %d: %w", i+1, err)
		}
	}
	m.Served = int64(load.ProcessStatus(p.PID()).VmRSS)
	r.Idle = append(r.Idle, m)
	fmt.Printf("idle %-20s %s before, %s connected, %s served\n", who, mib(m.Before), mib(m.Connected), mib(m.Served))
	return nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// versions returns the versions of flaked, Redis, memcached and the flaked of -before.
func (f *farm) versions() map[string]string {
	v := map[string]string{}
	for name, args := range map[string][]string{
		"flaked":    {filepath.Join(f.o.bin, "flaked"), "version"},
		"Redis":     {f.peers["redis-server"], "--version"},
		"memcached": {f.peers["memcached"], "--version"},
		"before":    {f.o.before, "version"},
	} {
		if args[0] == "" {
			continue
		}
		cmd := exec.Command(args[0], args[1:]...)
		if f.lib != "" {
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+f.lib)
		}
		out, _ := cmd.Output()
		line, _, _ := strings.Cut(string(out), "\n")
		if _, rest, ok := strings.Cut(line, "v="); ok { // Redis server v=7.0.15 sha=...
			line, _, _ = strings.Cut(rest, " ")
		}
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "memcached "), "flaked "), " ")
		v[name] = line
	}
	return v
}
