//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/internal/load"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// Sequences holds the measurements of named sequences.
type Sequences struct {
	Runs    []Run
	First   []FirstUse
	Process []InProcess
	Crowd   Crowd
	Many    Many
	Memory  []Memory
	Strict  []Strict
}

// Memory is the resident memory of an idle node, in bytes.
type Memory struct {
	Node string
	RSS  int64
}

// sequencesCase is the value of -only that measures named sequences. With one of the words in measure behind it, it
// measures a part.
const sequencesCase = "sequences"

const (
	steadySequence    = "order"
	switchingSequence = "switching"
	// benchCeiling is the ceiling of the measured sequences, so that it never binds.
	benchCeiling = 100_000_000
	// The switching sequence has blocks of switchBlock values. At switchRate requests a second a block lasts 100 ms.
	switchBlock, switchRate = 2048, 20_480
)

// sequenceCases returns the cases over TCP.
func sequenceCases() []Case {
	var all []Case
	for _, pipeline := range pipelines {
		who := []Contender{floorC, flaked, flakedNext, redis}
		if pipeline == 100 {
			who = append(who, flakedIncr)
		}
		all = append(all, Case{Name: gridName("tcp", 50, pipeline), Network: "tcp", Conns: 50, Pipeline: pipeline, Batch: 1, Who: who})
	}
	return append(all, Case{Name: switchCase, Network: "tcp", Conns: 50, Pipeline: 1, Batch: 1, Rate: switchRate,
		Who: []Contender{flakedSteady, flakedSwitching}})
}

const switchCase = "blocks switch"

func (s *Sequences) measure(ctx context.Context, f *farm, r *Results) error {
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"process", func() error { return s.measureProcess(ctx, f) }},
		{"memory", func() error { return s.measureMemory(ctx, f) }},
		{"wire", func() error { return s.measureWire(ctx, f, r) }},
		{"cluster", func() error { return s.measureCluster(ctx) }},
		{"strict", func() error { return s.measureStrict(ctx, f) }},
	} {
		if f.o.only != sequencesCase && f.o.only != sequencesCase+" "+part.name {
			continue
		}
		if err := part.run(); err != nil {
			return err
		}
	}
	return nil
}

// measureMemory starts nodes that are idle.
func (s *Sequences) measureMemory(ctx context.Context, f *farm) error {
	for _, who := range []Contender{flaked, flakedBefore} {
		if f.flaked(who) == "" {
			continue
		}
		p, err := f.start(ctx, who, "tcp")
		if err != nil {
			return err
		}
		if err := local.Pause(ctx, 5*time.Second); err != nil {
			return err
		}
		s.Memory = append(s.Memory, Memory{string(who) + ", no sequence", int64(load.ProcessStatus(p.PID()).VmRSS)})
		if who == flaked {
			if err := f.createSequences(ctx, p, "a", "b", "c"); err != nil {
				return err
			}
			if err := local.Pause(ctx, 5*time.Second); err != nil {
				return err
			}
			s.Memory = append(s.Memory, Memory{string(who) + ", 3 sequences", int64(load.ProcessStatus(p.PID()).VmRSS)})
		}
		f.stop(p)
	}
	return nil
}

// measureWire measures nodes over TCP, by turns.
func (s *Sequences) measureWire(ctx context.Context, f *farm, r *Results) error {
	contenders := []Contender{floorC, redis, flaked}
	if f.o.before != "" {
		contenders = append(contenders, flakedBefore)
	}
	servers := map[Contender]*process{}
	for _, who := range contenders {
		p, err := f.start(ctx, who, "tcp")
		if err != nil {
			return err
		}
		servers[who] = p
		defer f.stop(p)
	}
	node := servers[flaked]
	if err := f.createSequences(ctx, node, steadySequence, switchingSequence); err != nil {
		return err
	}
	if err := s.measureFirst(ctx, f, node); err != nil {
		return err
	}
	wire := &Results{Missing: r.Missing}
	for _, c := range sequenceCases() {
		if f.o.before != "" && c.Name != switchCase {
			c.Who = append(c.Who, flakedBefore)
		}
		for round := range f.o.Rounds {
			for i := range c.Who {
				who := c.Who[(i+round)%len(c.Who)]
				if err := wire.measure(ctx, f, c, who, round, servers[program(who)]); err != nil {
					return err
				}
			}
		}
	}
	s.Runs = wire.Runs
	return nil
}

// createSequences creates sequences in the cluster of a node, and waits until the node issues values of them.
func (f *farm) createSequences(ctx context.Context, p *process, names ...string) error {
	return f.operate(ctx, p, func(o seqstore.Operator) error {
		for _, name := range names {
			if _, err := o.Create(ctx, definition(name)); err != nil {
				return fmt.Errorf("create sequence %s: %w", name, err)
			}
		}
		for _, name := range names {
			if err := awaitValue(ctx, p.tcp, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// operate calls do with an operator of a node's cluster, after the first sequence can be created.
func (f *farm) operate(ctx context.Context, p *process, do func(seqstore.Operator) error) error {
	store, err := connect(ctx, f.zk, p.name)
	if err != nil {
		return err
	}
	defer store.Close()
	o := seqstore.Operator{Store: store, Now: func() int64 { return time.Now().UnixMilli() }, By: "bench"}
	if err := awaitState(ctx, o); err != nil {
		return err
	}
	return do(o)
}

// definition returns a sequence whose values are as long as IDs.
func definition(name string) seqstore.Definition {
	d := seqstore.Definition{
		Name: name, StartGiven: true, Map: sequence.Map{Start: 1_000_000_000_000_000_000, Increment: 1, Max: math.MaxInt64},
		Settings: seqstore.Settings{Block: sequence.MinBlock, SupplyMs: (15 * time.Minute).Milliseconds(), HoldMs: time.Hour.Milliseconds(), Ceiling: benchCeiling, HardCeiling: benchCeiling},
	}
	switch {
	case name == switchingSequence:
		d.Block, d.SupplyMs = switchBlock, 1
	case sequence.IsTemplate(name):
		d.MaxNames = 10_000
	}
	return d
}

// connect returns a connection to ZooKeeper.
func connect(ctx context.Context, zk, cluster string) (*zkstore.ZK, error) {
	store, err := zkstore.NewZK(zkstore.ZKConfig{Connect: zk, Cluster: cluster, SessionTimeout: 30 * time.Second})
	if err != nil {
		return nil, err
	}
	go func() { _ = store.Run(context.WithoutCancel(ctx)) }()
	return store, nil
}

const startTime = 60 * time.Second

// awaitState waits until a node has created the record of all sequences.
func awaitState(ctx context.Context, o seqstore.Operator) error {
	return until(ctx, func() error {
		_, _, err := o.Show(ctx, "none")
		if err == seqstore.ErrNotFound {
			return nil
		}
		return err
	})
}

// awaitValue waits until a node issues a value of a sequence.
func awaitValue(ctx context.Context, address, name string) error {
	return until(ctx, func() error {
		reply, err := local.Ask("tcp", address, "NEXT "+name+"\n")
		if err == nil && (reply == "" || reply[0] == '-') {
			err = fmt.Errorf("NEXT %s: %q", name, reply)
		}
		return err
	})
}

// until calls try until it succeeds, for startTime at most.
func until(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(startTime); ; {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := local.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
