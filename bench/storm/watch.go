//go:build linux

package main

import (
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/bench/local"
)

// load has the counters of ZooKeeper's servers for one phase.
type load struct {
	took             time.Duration
	requests, writes int64
	waiting          int64 // the most requests that one server was serving at once
	latency          local.Latency
}

// sampleEvery is the time between two samples of the servers' counters.
const sampleEvery = 250 * time.Millisecond

// watch samples the counters of the servers from now until the function that it returns is called.
// A server that is killed loses what it has counted since the last sample.
func watch(zk string) (end func() load) {
	local.ResetLatency(zk)
	stop := make(chan struct{})
	var l load
	var sampling sync.WaitGroup
	began := time.Now()
	sampling.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		last := map[string]local.Counters{}
		l.sample(zk, last)
		for {
			select {
			case <-stop:
				l.sample(zk, last)
				return
			case <-tick.C:
				l.sample(zk, last)
			}
		}
	})
	return func() load {
		close(stop)
		sampling.Wait()
		l.took, l.latency = time.Since(began), local.LatencyOf(zk)
		return l
	}
}

// sample adds what the servers have counted since last, and puts the counters of now into last.
func (l *load) sample(zk string, last map[string]local.Counters) {
	var wrote int64 // the server that is behind the others has seen fewer writes
	for server := range strings.SplitSeq(zk, ",") {
		now, err := local.CountersOf(server)
		if err != nil {
			continue // killed
		}
		before, ok := last[server]
		last[server] = now
		if !ok {
			continue
		}
		l.requests += max(0, now.Requests-before.Requests)
		l.waiting = max(l.waiting, now.Waiting)
		wrote = max(wrote, writesBetween(before.Zxid, now.Zxid))
	}
	l.writes += wrote
}

// writesBetween returns the number of writes from one zxid to another. A new leader begins to count
// at 0, in the lower 32 bits.
func writesBetween(from, to int64) int64 {
	const number = 1<<32 - 1
	if from>>32 != to>>32 {
		return to & number
	}
	return to - from
}
