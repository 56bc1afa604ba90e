//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// Attack is the behaviour of a bad client. Its text completes "a client that ...".
type Attack string

const (
	neverReads Attack = "asks and never reads, on 20 connections"
	drips      Attack = "drips a byte a second, on 200 connections"
	garbage    Attack = "sends garbage, on 20 connections"
	churns     Attack = "opens and closes, at full rate"
)

var attacks = []Attack{neverReads, drips, garbage, churns}

// Hostile is one measurement of 50 good connections, without and with a bad client.
type Hostile struct {
	Attack Attack
	Round  int
	// Share is the CPU time that the attack alone costs the server, as a share of a core.
	Share         float64
	Without, With Bench
}

// measureHostile runs the attackers on the generator's core with the lowest priority, so
// that they only get the time that the generator does not need.
func (r *Results) measureHostile(ctx context.Context, f *farm) error {
	p, err := f.start(ctx, flaked, "tcp")
	if err != nil {
		return err
	}
	defer f.stop(p)
	// Measure longer, because an attack comes in waves: a client that the server has
	// disconnected connects again.
	f.o.Duration *= 3
	defer func() { f.o.Duration /= 3 }()
	for round := range f.o.Rounds {
		for _, a := range attacks {
			h, err := f.besideAttack(ctx, p, a)
			if err != nil {
				if err := r.skip(ctx, flaked, fmt.Errorf("beside a client that %s: %w", a, err)); err != nil {
					return err
				}
				continue
			}
			h.Round = round
			r.Hostile = append(r.Hostile, h)
			fmt.Printf("hostile: %s: %.0f/s of %.0f/s, p99 %.0f us of %.0f us, errors %v, the attack alone takes %.0f %%\n",
				a, h.With.RequestsPerSecond, h.Without.RequestsPerSecond, h.With.Latency.P99, h.Without.Latency.P99, h.With.Errors.ByCode, 100*h.Share)
		}
	}
	return nil
}

func (f *farm) besideAttack(ctx context.Context, p *process, a Attack) (Hostile, error) {
	good := Case{Name: "hostile", Network: "tcp", Conns: 50, Pipeline: 1, Batch: 1}
	h := Hostile{Attack: a}
	var err error
	if h.Without, err = f.generate(ctx, good, flaked, p); err != nil {
		return h, err
	}
	if h.Share, err = f.attackAlone(ctx, p, a); err != nil {
		return h, err
	}
	stop, err := f.attack(a, p.tcp, 19)
	if err != nil {
		return h, err
	}
	defer func() { _ = stop() }()
	h.With, err = f.generate(ctx, good, flaked, p)
	return h, err
}

func (f *farm) attackAlone(ctx context.Context, p *process, a Attack) (float64, error) {
	stop, err := f.attack(a, p.tcp, 19)
	if err != nil {
		return 0, err
	}
	defer func() { _ = stop() }()
	_ = local.Pause(ctx, 300*time.Millisecond) // as the generator's warm-up
	before, _ := load.ProcessCPU(p.PID())
	start := time.Now()
	err = local.Pause(ctx, f.o.Duration)
	after, _ := load.ProcessCPU(p.PID())
	return (after - before).Seconds() / time.Since(start).Seconds(), err
}

// attack starts this program as the bad client, with a nice value. The returned function
// ends the attack. It returns an error if the attack had ended by itself.
func (f *farm) attack(a Attack, address string, nice int) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("taskset", "-c", fmt.Sprint(f.o.clientCore), "nice", "-n", fmt.Sprint(nice), self, "-attack", string(a), "-address", address)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() error {
		select {
		case err := <-ended:
			return fmt.Errorf("the attack ended before the end of the measurement: %w", err)
		default:
			_ = cmd.Process.Kill()
			<-ended
			return nil
		}
	}, nil
}

// doAttack attacks until this process is killed. A greedy attack also ends when ctx ends.
func doAttack(ctx context.Context, a Attack, address string) error {
	if g, ok := findGreedy(a); ok {
		return g.Run(ctx, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		})
	}
	conns, bad := 20, func(net.Conn) {}
	switch a {
	case neverReads:
		requests := make([]byte, 0, 64<<10)
		for len(requests) < cap(requests)-4 {
			requests = append(requests, "GET\n"...)
		}
		bad = func(c net.Conn) { flood(c, func() []byte { return requests }) }
	case garbage:
		bad = func(c net.Conn) {
			noise := make([]byte, 4<<10)
			flood(c, func() []byte {
				for i := range noise {
					noise[i] = byte(rand.Uint32())
				}
				return noise
			})
		}
	case drips:
		conns = 200
		bad = func(c net.Conn) {
			for {
				if _, err := c.Write([]byte{'G'}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
	case churns:
		conns = 4
	}
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			for {
				c, err := net.Dial("tcp", address)
				if err != nil {
					time.Sleep(10 * time.Millisecond) // out of ports
					continue
				}
				bad(c)
				if t, ok := c.(*net.TCPConn); ok {
					_ = t.SetLinger(0) // no port in TIME_WAIT
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	return nil
}

// flood writes until a write fails, because the server has closed the connection.
func flood(c net.Conn, next func() []byte) {
	for {
		if _, err := c.Write(next()); err != nil {
			return
		}
	}
}

// hostile returns medians over the rounds of an attack. loss is the share of good requests
// that the attack prevents, growth the factor by which their p99 grows, and share the
// server's CPU time for the attack alone. ok is false if there is no measurement.
func (r *Results) hostile(a Attack) (loss, growth, share float64, ok bool) {
	var losses, growths, shares []float64
	for _, h := range r.Hostile {
		if h.Attack == a && h.Without.RequestsPerSecond > 0 && h.Without.Latency.P99 > 0 {
			losses = append(losses, 1-h.With.RequestsPerSecond/h.Without.RequestsPerSecond)
			growths = append(growths, h.With.Latency.P99/h.Without.Latency.P99)
			shares = append(shares, h.Share)
		}
	}
	loss, ok = figures.Median(losses)
	growth, _ = figures.Median(growths)
	share, _ = figures.Median(shares)
	return loss, growth, share, ok
}
