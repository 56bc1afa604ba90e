package seq

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// A request was passed on to an owner that does not answer. When Run returns, the goroutine that asks has ended, and no
// other one starts.
func TestRunEndsRequestsThatWerePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := newLinked(t, 4*time.Second, 2)
		_, a := s.owned(all[0], all[1])
		asked, ended := make(chan struct{}, 1), false
		a.is.issuer.ordered.Go = a.goes
		a.is.issuer.ordered.Forward = func(ctx context.Context, _ ordered.PeerRequest) (ordered.Answer, error) {
			asked <- struct{}{}
			<-ctx.Done()
			time.Sleep(time.Second) // the end of the call takes long
			ended = true
			return ordered.Answer{}, ordered.ErrNothingIssued
		}
		ask := func() error {
			_, err := a.is.issuer.Take(new(sequence.Wait), []byte("ticks"), 1, false, func() {}, nil)
			return err
		}
		if err := ask(); err != sequence.ErrPending {
			t.Fatal(err)
		}
		<-asked
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a.is.Run(ctx)
		if !ended {
			t.Error("Run has returned, and the request is still under way")
		}
		_ = ask()
		synctest.Wait()
		if len(asked) > 0 {
			t.Error("a request is passed on after Run")
		}
	})
}

// hangingDir hangs when it writes, until go is closed.
type hangingDir struct {
	memDir
	hangs, goOn chan struct{}
}

func (d *hangingDir) Replace(name string, write func(to io.WriterAt) error) error {
	select {
	case d.hangs <- struct{}{}:
	default:
	}
	<-d.goOn
	return d.memDir.Replace(name, write)
}

// A disk hangs. Run returns all the same, so that the node can give its worker back, and Wait returns when the write
// has ended.
func TestWaitReturnsAfterTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		a := s.node()
		is := a.is
		dir := &hangingDir{hangs: make(chan struct{}, 1), goOn: make(chan struct{})}
		is.saver.inBackground = is.writing.Go
		is.saver.write = witnessIn(dir).save
		is.issuer.publish((*progress).leaveCluster)
		s.run(time.Second)
		if is.saveWitness(&following{state: record.State{Jumped: 1}}); is.issuer.progress.Load().saving == nil {
			t.Fatal("nothing is written")
		}
		<-dir.hangs
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		is.Run(ctx)
		waited := make(chan struct{})
		go func() { defer close(waited); is.Wait() }()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("Wait has returned while the disk is being written")
		default:
		}
		close(dir.goOn)
		<-waited
	})
}
