//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	guaik "github.com/GUAIK-ORG/go-snowflake/snowflake"
	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/flaked/flaked"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	godruoyi "github.com/godruoyi/go-snowflake"
	influx "github.com/influxdata/influxdb/pkg/snowflake"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

// Draw returns the first of n consecutive IDs, and n. Any number of goroutines may call it.
type Draw func() (first int64, n int)

// source is a generator that has been started.
type source struct {
	draw Draw
	// The time of an ID, in milliseconds since 1970, is id>>shift + epoch.
	epoch int64
	shift uint8
	stop  func() // nil: nothing to end
}

func (s source) madeAt(id int64) int64 { return id>>s.shift + s.epoch }

// Contender is a way of getting IDs. Its name stands in the tables.
type Contender struct {
	Name string
	// Differs says how the contender differs from a layout of 41 bits of milliseconds, 10
	// of worker and 12 of sequence. Empty: it does not.
	Differs string
	start   func() (source, error)
}

// ours reports whether the contender is flaked.
func (c Contender) ours() bool { return strings.HasPrefix(c.Name, "flaked") }

// epoch is Twitter's epoch. Contenders whose epoch can be chosen have it.
const epoch = 1288834974657

const (
	flakedNext    = "flaked, `Next`"
	flakedNode    = "flaked, a node in the program"
	flakedReserve = "flaked, `Reserve` 64"
	flakedBorrow  = "flaked, `Next`, `--borrow 100ms`"
)

// bound returns contenders with 12 bits of sequence, or as near as they can be set.
func bound() []Contender {
	leaf := worker.Leaf()
	return []Contender{
		ours(flakedNext, leaf, 1),
		inProgram(leaf),
		ours(flakedReserve, leaf, 64),
		bwmarrinOf(10, 12),
		sonyOf(10, 12),
		yitterOf("yitter, drift (its default)", 1, 10, 12),
		yitterOf("yitter, traditional", 2, 10, 12),
		{"godruoyi", "gives away 4,095 a millisecond", func() (source, error) {
			godruoyi.SetMachineID(1)
			godruoyi.SetStartTime(time.UnixMilli(epoch))
			return source{draw: func() (int64, int) { return int64(godruoyi.ID()), 1 }, epoch: epoch, shift: 22}, nil
		}},
		{"GUAIK", "5 bits of datacenter, 5 of worker; its own epoch", func() (source, error) {
			s, err := guaik.NewSnowflake(0, 1)
			if err != nil {
				return source{}, err
			}
			return source{draw: func() (int64, int) { return s.NextVal(), 1 }, epoch: 1577808000000, shift: 22}, nil
		}},
		influxdb(),
	}
}

// free returns the same contenders with 21 bits of sequence, so that none reaches a ceiling.
// Contenders with constant bits are left out. influxdb has constant bits, too, but no
// ceiling: it goes on with the next milliseconds.
func free() []Contender {
	wide := worker.Leaf()
	wide.WorkerBits, wide.SequenceBits = 1, 21
	return []Contender{
		ours(flakedNext, wide, 1),
		inProgram(wide),
		ours(flakedReserve, wide, 64),
		bwmarrinOf(1, 21),
		sonyOf(1, 21),
		yitterOf("yitter, drift (its default)", 1, 1, 21),
		yitterOf("yitter, traditional", 2, 1, 21),
		influxdb(),
	}
}

// generator returns a generator as a node has it: on the issuing clock, with the default
// rollback policy.
func generator(l worker.Layout, borrow time.Duration) (*worker.Generator, error) {
	g, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: l, Worker: 1, Borrow: borrow, Clock: timeguard.NewIssuing(timeguard.System()), Rollback: timeguard.RollbackPolicy{},
	})
	if err == nil {
		g.Extend(l.MaxTick())
	}
	return g, err
}

// inProgram is a node of package flaked. It has no ZooKeeper, which Next never asks.
func inProgram(l worker.Layout) Contender {
	return Contender{flakedNode, "", func() (source, error) {
		ctx := context.Background()
		n, err := flaked.Open(ctx, flaked.Config{InMemory: true, Settings: node.Settings{Layout: &l}})
		if err != nil {
			return source{}, err
		}
		draw := func() (int64, int) {
			id, err := n.Next(ctx)
			if err != nil {
				panic(err)
			}
			return int64(id), 1
		}
		return source{draw: draw, epoch: l.Epoch, shift: 63 - l.TimeBits, stop: func() { _ = n.Close(ctx) }}, nil
	}}
}

func ours(name string, l worker.Layout, n int) Contender { return borrowing(name, l, n, 0) }

func borrowing(name string, l worker.Layout, n int, borrow time.Duration) Contender {
	return Contender{name, "", func() (source, error) {
		g, err := generator(l, borrow)
		if err != nil {
			return source{}, err
		}
		ctx := context.Background()
		s := source{epoch: l.Epoch, shift: 63 - l.TimeBits}
		if n == 1 {
			s.draw = func() (int64, int) {
				id, err := g.Next(ctx)
				if err != nil {
					panic(err)
				}
				return int64(id), 1
			}
			return s, nil
		}
		s.draw = func() (int64, int) {
			run, err := g.Reserve(ctx, n)
			if err != nil {
				panic(err)
			}
			return int64(run.First), run.Len
		}
		return s, nil
	}}
}

func bwmarrinOf(node, step uint8) Contender {
	return Contender{"bwmarrin", "", func() (source, error) {
		// NewNode copies these package variables.
		bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits = epoch, node, step
		n, err := bwmarrin.NewNode(1)
		if err != nil {
			return source{}, err
		}
		return source{draw: func() (int64, int) { return n.Generate().Int64(), 1 }, epoch: epoch, shift: node + step}, nil
	}}
}

func sonyOf(machine, sequence int) Contender {
	return Contender{"sonyflake v2", "the sequence above the machine; set to ticks of 1 ms", func() (source, error) {
		sf, err := sonyflake.New(sonyflake.Settings{
			BitsSequence: sequence, BitsMachineID: machine, TimeUnit: time.Millisecond, StartTime: time.UnixMilli(epoch),
			MachineID: func() (int, error) { return 1, nil },
		})
		if err != nil {
			return source{}, err
		}
		draw := func() (int64, int) {
			id, err := sf.NextID()
			if err != nil {
				panic(err)
			}
			return id, 1
		}
		return source{draw: draw, epoch: epoch, shift: uint8(machine + sequence)}, nil
	}}
}

func yitterOf(name string, method uint16, node, sequence byte) Contender {
	differs := "five numbers of each millisecond kept back: 4,091"
	if method == 1 {
		differs += "; runs up to 2 s ahead of the clock, then sleeps"
	}
	return Contender{name, differs, func() (s source, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("yitter: %v", r) // it panics on wrong options
			}
		}()
		g := idgen.NewDefaultIdGenerator(&idgen.IdGeneratorOptions{
			Method: method, BaseTime: epoch, WorkerId: 1, WorkerIdBitLength: node, SeqBitLength: sequence, MinSeqNumber: 5, TopOverCostCount: 2000,
		})
		return source{draw: func() (int64, int) { return g.NewLong(), 1 }, epoch: epoch, shift: node + sequence}, nil
	}}
}

func influxdb() Contender {
	return Contender{"influxdb", "42 bits of time, its own epoch; runs ahead of the clock without end", func() (source, error) {
		g := influx.New(1)
		return source{draw: func() (int64, int) { return int64(g.Next()), 1 }, epoch: 1491696000000, shift: 22}, nil
	}}
}
