// Package doctor checks what a node needs before the node starts: ZooKeeper, the cluster's record,
// the state directory, the clock, credentials and ports. It leaves nothing behind: it writes one
// ephemeral record to ZooKeeper and one file without a name, and both are gone when it ends.
package doctor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
)

// Level is the result of a check.
type Level string

// The levels. Skip means that the check could not be made here. A check that needs what has failed is left out.
const (
	OK   Level = "ok"
	Skip Level = "skip"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one line of the report. Scripts rely on its JSON: fields and checks may be
// added, but not changed.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Advice says what to do. It is empty if nothing has to be done.
	Advice string `json:"advice"`

	// unreachable means that ZooKeeper was not reached, so the failure is not this machine's.
	unreachable bool
}

// Report has all findings, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Summary  Summary   `json:"summary"`
}

// Summary counts findings by level. Level is the worst level, with Skip counting as OK.
type Summary struct {
	Level Level `json:"level"`
	OK    int   `json:"ok"`
	Warn  int   `json:"warn"`
	Fail  int   `json:"fail"`
	Skip  int   `json:"skip"`
	// Unreachable is true if something failed, and only because ZooKeeper was not reached.
	Unreachable bool  `json:"unreachable"`
	TookMs      int64 `json:"took_ms"`
}

// Config describes the node that will be started. All fields are required, but those that say what they mean
// when empty.
type Config struct {
	// ZK is ZooKeeper's address and the cluster's name.
	ZK store.ZKConfig
	// Bootstrap allows the node to make the cluster.
	Bootstrap bool
	// Fits returns the reason why a node with these settings does not fit a cluster, or nil if
	// it does.
	Fits     func(coordinator.Cluster) error
	StateDir string
	// ReleaseOnExit means that the node gives its worker back when it stops, so
	// its state need not last.
	ReleaseOnExit bool
	// Listen are the addresses that the node serves, each as "tcp" or "unix" and an address.
	// Admin is the TCP address of its HTTP server, "" for none.
	Listen [][2]string
	Admin  string
	// Refuses returns the reason why the node refuses to listen on a TCP address of Listen, nil if it does not refuse.
	Refuses func(address string) error
	// Credentials returns the reason why the node cannot use the files with its tokens and certificates. The Config has
	// nil if the node has neither tokens nor certificates.
	Credentials func() error
	// Address is the address at which other nodes ask this one for ordered sequences, "" for none. Peer returns the
	// settings of this node's connections to them.
	Address string
	Peer    func() (dialog.Client, error)
	// Timeout bounds the examination of the state directories, and then each group of checks.
	// The groups run concurrently.
	Timeout time.Duration
}

// Run does all checks. Checks that do not need each other run concurrently.
func Run(ctx context.Context, cfg Config) Report {
	begin := time.Now()
	dir := examine(ctx, cfg)
	defer dir.look.Close()
	var own coordinator.Labels
	parts := []func(context.Context) []Finding{
		func(ctx context.Context) []Finding { return checkServers(ctx, cfg) },
		func(ctx context.Context) (found []Finding) { found, own = checkRecords(ctx, cfg, dir); return found },
		func(ctx context.Context) []Finding { return checkDir(ctx, cfg, dir) },
		func(context.Context) []Finding { return checkClock(dir) },
		func(ctx context.Context) []Finding { return checkCredentials(ctx, cfg) },
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
	r := Report{Findings: append(slices.Concat(found...), checkPorts(cfg, dir.look.Locked, own)...)}
	r.Summary = summarise(r.Findings)
	r.Summary.TookMs = time.Since(begin).Milliseconds()
	return r
}

// checkCredentials judges whether the node can use the files with its tokens and certificates. A node refuses to start
// otherwise.
func checkCredentials(ctx context.Context, cfg Config) []Finding {
	if cfg.Credentials == nil {
		return nil
	}
	f := Finding{Check: "credentials", Level: OK, Text: "the node can use its tokens and certificates"}
	if _, err := bounded(ctx, func() (none struct{}, err error) { return none, cfg.Credentials() }); err != nil {
		f.Level, f.Text = Fail, "tokens and certificates: "+err.Error()
		f.Advice = "A node that cannot use them does not start. Run doctor as the node's user"
	}
	return []Finding{f}
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

// bounded returns f's result, or errSlow once ctx has ended. The goroutine that runs f is then
// left behind: a call to a disk that has stalled cannot be interrupted.
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
