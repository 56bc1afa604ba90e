package local

import (
	"fmt"
	"strconv"
	"strings"
)

// Counters has what one ZooKeeper server has counted since its start, or since ResetLatency.
type Counters struct {
	Requests int64 // received, pings of sessions among them
	Zxid     int64 // the last write: the leader's epoch in the upper 32 bits, a number below
	In, Out  int64 // bytes received and sent
	Waiting  int64 // requests that are being served now
}

// CountersOf returns the counters of the server at address, "host:port".
func CountersOf(address string) (c Counters, err error) {
	mntr, err := Ask("tcp", address, "mntr")
	if err != nil {
		return c, err
	}
	srvr, err := Ask("tcp", address, "srvr")
	if err != nil {
		return c, err
	}
	for _, row := range []struct {
		name string
		to   *int64
	}{
		{"zk_packets_received", &c.Requests}, {"zk_bytes_received_count", &c.In}, {"zk_response_bytes", &c.Out}, {"zk_outstanding_requests", &c.Waiting},
	} {
		if *row.to, err = number(mntr, row.name, 10); err != nil {
			return c, err
		}
	}
	c.Zxid, err = number(srvr, "Zxid:", 0)
	return c, err
}

// Latency has the times that ZooKeeper's servers took to answer requests, in ms: from the moment
// that a server read the request.
type Latency struct{ Mean, Longest float64 }

// LatencyOf returns the mean of the servers' means, and the longest time, since ResetLatency.
// Servers that do not answer are left out.
func LatencyOf(addresses string) (l Latency) {
	servers := 0
	for server := range strings.SplitSeq(addresses, ",") {
		mntr, err := Ask("tcp", server, "mntr")
		if err != nil {
			continue
		}
		mean, longest := fraction(mntr, "zk_avg_latency"), fraction(mntr, "zk_max_latency")
		l.Mean, l.Longest = l.Mean+mean, max(l.Longest, longest)
		servers++
	}
	l.Mean /= float64(max(1, servers))
	return l
}

// ResetLatency begins a new measurement of the latency.
func ResetLatency(addresses string) {
	for server := range strings.SplitSeq(addresses, ",") {
		_, _ = Ask("tcp", server, "srst")
	}
}

// LeaderOf returns the place of the server that leads among addresses, from 0.
func LeaderOf(addresses string) (at int, err error) {
	for i, server := range strings.Split(addresses, ",") {
		if srvr, err := Ask("tcp", server, "srvr"); err == nil && strings.Contains(srvr, "Mode: leader") {
			return i, nil
		}
	}
	return 0, fmt.Errorf("none of %s leads", addresses)
}

// number returns the number after name on a line of these two words. With base 0 it takes a
// prefix as 0x. With any other base it takes a decimal number and drops a fraction.
func number(text, name string, base int) (int64, error) {
	word, ok := wordAfter(text, name)
	switch {
	case !ok:
		return 0, fmt.Errorf("ZooKeeper did not report %s", name)
	case base == 0:
		return strconv.ParseInt(word, 0, 64)
	}
	f, err := strconv.ParseFloat(word, 64)
	return int64(f), err
}

// fraction returns the number after name, 0 if there is none.
func fraction(text, name string) float64 {
	word, _ := wordAfter(text, name)
	f, _ := strconv.ParseFloat(word, 64)
	return f
}

func wordAfter(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return fields[1], true
		}
	}
	return "", false
}
