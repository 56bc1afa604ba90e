// Package doctor looks at what a node needs before it needs it: ZooKeeper, the
// cluster's record, the state directory, the clock, descriptors and ports. It
// changes nothing but for one ephemeral record in ZooKeeper and a file without
// a name, which are gone when it ends.
package doctor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/zkstore"
)

// Level is how well something is.
type Level string

// The levels, from well on. Skip is what could not be looked at, for a reason
// that is a failure of its own.
const (
	OK   Level = "ok"
	Skip Level = "skip"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one line of the report. Scripts rely on its JSON: fields and
// checks are added, not changed.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Advice is what to do; empty where there is nothing to.
	Advice string `json:"advice"`

	unreachable bool // ZooKeeper is: the failure is not of this machine
}

// Report is all that was found, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Summary  Summary   `json:"summary"`
}

// Summary counts findings by their levels. Level is the worst.
type Summary struct {
	Level Level `json:"level"`
	OK    int   `json:"ok"`
	Warn  int   `json:"warn"`
	Fail  int   `json:"fail"`
	Skip  int   `json:"skip"`
	// Unreachable: all that failed is that ZooKeeper was not reached.
	Unreachable bool  `json:"unreachable"`
	TookMs      int64 `json:"took_ms"`
}

// Config is what a node is to be started with.
type Config struct {
	// ZK is where the cluster is. Required.
	ZK zkstore.ZKConfig
	// Bootstrap: the node may make the cluster.
	Bootstrap bool
	// Fits tells why a node of these settings cannot live in a cluster. nil means
	// that it can in any.
	Fits func(coordinator.Cluster) error
	// StateDirs are its state directories, one for each worker. Required.
	StateDirs []string
	// ReleaseOnExit: it is not meant to come back with its worker.
	ReleaseOnExit bool
	// Listen are the addresses that it serves, as "tcp" or "unix" and an address;
	// Admin that of its HTTP, empty for none.
	Listen [][2]string
	Admin  string
	// Timeout bounds each kind of check; they are done at once. 0 means 3 s.
	Timeout time.Duration
}

// Run does all checks, at once where they do not need each other.
func Run(ctx context.Context, cfg Config) Report {
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	if cfg.Fits == nil {
		cfg.Fits = func(coordinator.Cluster) error { return nil }
	}
	begin := time.Now()
	dirs := examineDirs(ctx, cfg)
	parts := []func(context.Context) []Finding{
		func(ctx context.Context) []Finding { return checkServers(ctx, cfg) },
		func(ctx context.Context) []Finding { return checkRecords(ctx, cfg, dirs) },
		func(ctx context.Context) []Finding { return checkDirs(ctx, cfg, dirs) },
		func(ctx context.Context) []Finding { return checkClock(ctx, dirs) },
		func(context.Context) []Finding { return checkDescriptors(dirs) },
		func(ctx context.Context) []Finding { return checkPorts(ctx, cfg, dirs) },
	}
	found := make([][]Finding, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
			defer cancel()
			found[i] = part(ctx)
		})
	}
	wg.Wait()
	r := Report{Findings: slices.Concat(found...)}
	r.Summary = summarise(r.Findings)
	r.Summary.TookMs = time.Since(begin).Milliseconds()
	return r
}

func summarise(findings []Finding) Summary {
	s := Summary{Level: OK, Unreachable: true}
	for _, f := range findings {
		switch f.Level {
		case OK:
			s.OK++
		case Skip:
			s.Skip++
		case Warn:
			s.Warn++
		case Fail:
			s.Fail++
			s.Unreachable = s.Unreachable && f.unreachable
		}
	}
	s.Unreachable = s.Unreachable && s.Fail > 0
	switch {
	case s.Fail > 0:
		s.Level = Fail
	case s.Warn > 0:
		s.Level = Warn
	}
	return s
}

var errSlow = errors.New("no answer in time")

// bounded calls f, and leaves it alone when it takes too long: a disk that has
// stalled cannot be interrupted.
func bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		val T
		err error
	}
	done := make(chan result, 1)
	go func() {
		val, err := f()
		done <- result{val, err}
	}()
	select {
	case r := <-done:
		return r.val, r.err
	case <-ctx.Done():
		var none T
		return none, errSlow
	}
}
