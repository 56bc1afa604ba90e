package node

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
)

// blockingWriter is the log of an embedding program. While it is blocked, writes hang.
type blockingWriter struct{ hangs, goOn chan struct{} }

func (w blockingWriter) Write(p []byte) (int, error) {
	select {
	case w.hangs <- struct{}{}:
	default:
	}
	<-w.goOn
	return len(p), nil
}

// Every function that logs a change of the state does so while the logger blocks. Refusals, probes and snapshots, which
// need the state, are answered all the same.
func TestBlockedLoggerStopsNoAnswers(t *testing.T) {
	for name, log := range map[string]func(n *Node){
		"noteRound": func(n *Node) { n.keeper.noteRound(io.EOF) },
		"noteLeap":  func(n *Node) { n.keeper.noteLeap(time.Second) },
		"noteStall": func(n *Node) { n.disk.savingSince = n.monotonic() - 2*int64(stallAfter); n.noteStall() },
		"noteDisk": func(n *Node) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.noteDisk(io.EOF)
		},
		"startServing": func(n *Node) {
			n.tenure = &tenure{floor: n.now() + 9000}
			n.changeClaim(func(c *coordinator.Claim) { c.EverConfirmed, c.LeaseUntil = true, n.now()+99_000 })
			n.startServing()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := blockingWriter{make(chan struct{}, 1), make(chan struct{})}
			n := starting(t, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: w}) })
			ended := make(chan struct{})
			go func() { defer close(ended); log(n) }()
			<-w.hangs
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_ = n.refusalAtBound()
				_ = n.Ready()
				n.mu.Lock()
				n.tenure = nil // a snapshot of it needs a generator
				n.mu.Unlock()
				_, _ = n.Snapshot(), n.Worker()
			}()
			select {
			case <-answered:
			case <-time.After(10 * time.Second):
				t.Error("nothing is answered while the logger blocks")
			}
			close(w.goOn)
			<-ended
			<-answered
		})
	}
}
