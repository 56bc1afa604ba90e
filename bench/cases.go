//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Contender is a server together with the way it is asked. Its text stands in the tables.
type Contender string

const (
	floorC           Contender = "floor, C"
	floorGo          Contender = "floor, Go"
	floorC1000       Contender = "floor, C, 1000 lines"
	flaked           Contender = "flaked"
	flakedRESP       Contender = "flaked, RESP"
	flakedWide       Contender = "flaked, 20 bits of sequence"
	flakedSpin       Contender = "flaked --spin 20us"
	flakedGoroutines Contender = "flaked --engine goroutines"
	// These run the program of -before.
	flakedBefore     Contender = "flaked, before"
	flakedWideBefore Contender = "flaked, 20 bits of sequence, before"
	redis            Contender = "Redis INCR"
	redisLine        Contender = "Redis INCR, inline"
	memcached        Contender = "memcached incr"
	// These ask a flaked for values of named sequences.
	flakedNext      Contender = "flaked, NEXT"
	flakedIncr      Contender = "flaked, INCR in RESP"
	flakedSwitching Contender = "flaked, a new block every 100 ms"
	flakedSteady    Contender = "flaked, one block"
)

// ask returns the generator's flags for a contender.
func (c Contender) ask() []string {
	switch c {
	case flakedRESP:
		return []string{"--protocol", "resp"}
	case redis:
		return []string{"--protocol", "resp", "--command", "INCR x"}
	case redisLine:
		return []string{"--protocol", "inline", "--command", "INCR x"}
	case memcached:
		return []string{"--command", "incr x 1"}
	case flakedNext, flakedSteady:
		return []string{"--command", "NEXT " + steadySequence}
	case flakedIncr:
		return []string{"--protocol", "resp", "--command", "INCR " + steadySequence}
	case flakedSwitching:
		return []string{"--command", "NEXT " + switchingSequence}
	}
	return nil
}

// Case is one load, and the contenders that it is measured with.
type Case struct {
	Name     string
	Network  string // tcp or unix
	Conns    int
	Pipeline int
	Batch    int
	Rate     int
	Duration time.Duration // 0: that of -duration
	Timeout  time.Duration // 0: the generator's
	Who      []Contender
	// Check makes the generator check the IDs. That slows the generator down, so the
	// figures are then not the server's alone.
	Check bool
}

func (c Case) args() []string {
	args := []string{"--conns", fmt.Sprint(c.Conns), "--pipeline", fmt.Sprint(c.Pipeline), "--batch", fmt.Sprint(c.Batch)}
	if c.Rate > 0 {
		args = append(args, "--rate", fmt.Sprint(c.Rate))
	}
	if c.Timeout > 0 {
		args = append(args, "--timeout", c.Timeout.String())
	}
	if !c.Check {
		args = append(args, "--no-check")
	}
	return args
}

var (
	connections = []int{1, 50, 200}
	pipelines   = []int{1, 16, 100}
	networks    = []string{"tcp", "unix"}
)

// Names of the cases that are not in the grid of networks, connections and pipelines.
const (
	openLoop  = "50,000 a second"
	batchCase = "GET 1000"
	checked   = "checked"
)

func gridName(network string, conns, pipeline int) string {
	return fmt.Sprintf("%s c%d p%d", network, conns, pipeline)
}

// cases returns all cases but the idle connections, the hostile clients and the greedy ones.
func cases() []Case {
	var all []Case
	for _, pipeline := range pipelines {
		for _, network := range networks {
			for _, conns := range connections {
				c := Case{
					Name: gridName(network, conns, pipeline), Network: network, Conns: conns, Pipeline: pipeline, Batch: 1,
					Who: []Contender{floorC, floorGo, flaked, flakedRESP, redis, memcached},
				}
				switch {
				case pipeline == 1 && conns == 1:
					c.Who = append(c.Who, flakedSpin)
				case pipeline > 1:
					c.Who = append(c.Who, redisLine)
				}
				if pipeline == 100 && conns > 1 {
					c.Who = append(c.Who, flakedWide)
				}
				all = append(all, c)
			}
		}
	}
	return append(all,
		Case{Name: openLoop, Network: "tcp", Conns: 50, Pipeline: 1, Batch: 1, Rate: 50_000,
			Who: []Contender{floorC, floorGo, flaked, flakedRESP, redis, memcached}},
		Case{Name: batchCase, Network: "tcp", Conns: 50, Pipeline: 1, Batch: 1000,
			Who: []Contender{floorC1000, flaked, flakedRESP, flakedWide}},
		Case{Name: checked, Network: "tcp", Conns: 50, Pipeline: 16, Batch: 1, Check: true,
			Who: []Contender{flaked, flakedRESP, flakedWide}},
	)
}

// chosen returns the cases that -only selects, with the contenders that -who selects. If
// -before names another flaked, chosen adds it beside this one.
func (o options) chosen() []Case {
	var out []Case
	for _, c := range cases() {
		if !matches(o.only, ",", c.Name) {
			continue
		}
		for _, who := range slices.Clone(c.Who) {
			if before, ok := who.before(); ok && o.before != "" {
				c.Who = append(c.Who, before)
			}
		}
		c.Who = slices.DeleteFunc(c.Who, func(who Contender) bool { return !matches(o.who, ";", string(who)) })
		out = append(out, c)
	}
	return out
}

// before returns the contender that -before adds beside c, and whether there is one.
func (c Contender) before() (Contender, bool) {
	switch c {
	case flaked:
		return flakedBefore, true
	case flakedWide:
		return flakedWideBefore, true
	}
	return "", false
}

// matches reports whether name contains one of the texts in only, which are joined by
// separator. If only is empty, every name matches.
func matches(only, separator, name string) bool {
	return only == "" || slices.ContainsFunc(strings.Split(only, separator), func(part string) bool { return strings.Contains(name, part) })
}
