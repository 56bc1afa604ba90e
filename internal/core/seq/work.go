package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/timeguard"
)

// The I/O of a round for one series. work_read.go reads what a decision needs, and work_write.go writes the step.

// roundIO has the facts that the goroutines of a round go by. It is a copy, so it does not change while they run.
// They also reach putBackNames and, through worklist, the agenda.
type roundIO struct {
	issuer       *Issuer
	cluster      ClusterInfo
	losses       losses.State
	session      int64
	spread       time.Duration // see the function spread
	putBackNames *putBackNames // to which the goroutines add
}

// roundIO returns what the goroutine of Rounds knows now.
func (fo *follower) roundIO() roundIO {
	return roundIO{fo.issuer, fo.cluster, fo.losses, fo.session, fo.spread, &fo.putBackNames}
}

// maxTries is the number of tries in one round. Usually a try fails because another node is faster. One that ends
// with errReadBefore or mode.ErrNotSent, or with a step after which another one is due, counts as well.
const maxTries = 3

// work does what is due for a series: it reads all that the decision needs, decides, and makes one write. It does so
// again if another write was faster, or if that one put back or created what the next one needs.
func (rw roundIO) work(ctx context.Context, s *series) error {
	for tries := range maxTries {
		sent := rw.issuer.cfg.Elapsed.Now()
		v, err := rw.gather(ctx, s, tries == 0) // a write that failed leaves nothing to reuse
		if err != nil {
			return err
		}
		st, err := s.decide(v, rw.situation(sent))
		if errors.Is(err, errReadBefore) {
			continue
		}
		if err != nil || st.kind == noStep {
			rw.nextAlarm(s, rw.issuer.now())
			return err
		}
		if again, err := rw.commit(ctx, s, v, st); err != nil || !again {
			return err
		}
	}
	rw.pauseSeries(s)
	return nil
}

// situation returns what a decision goes by besides the records. The records were read at sent, which is the present
// time if none were.
func (rw roundIO) situation(sent timeguard.Moment) mode.Situation {
	return mode.Situation{
		AtMost: sent.Most, AtLeast: sent.Least, SeqTime: rw.losses.SeqTime(sent.Least),
		Unconfirmed: rw.unconfirmed(), Spread: rw.spread,
		Volatile: !rw.issuer.outlasts(), Nonce: rw.issuer.cfg.Nonce(), By: rw.issuer.cfg.By, Session: rw.session,
	}
}

// pauseSeries lets a round that comes a little later try again.
func (rw roundIO) pauseSeries(s *series) {
	s.Mu.Lock()
	most := mode.Backoff(s.FailedRounds)
	if s.Issuing != nil {
		most = s.Issuing.Pause(rw.issuer.now())
	}
	s.FailedRounds++
	s.Mu.Unlock()
	rw.pauseUpTo(s, most)
}

// pauseUpTo makes the rounds leave a series alone for a random time.
func (rw roundIO) pauseUpTo(s *series, most time.Duration) {
	until := rw.issuer.now() + int64(rw.issuer.cfg.Retry(most))
	s.Mu.Lock()
	s.PausedUntil = until
	s.Mu.Unlock()
	rw.issuer.alarms.set(s, alarm{until, until})
}

// unconfirmed returns the time left until this node may take positions, 0 if it may (S9, S11, S12, S36). In a new
// incarnation it waits for the confirming time: in that time, nodes put back what they know better, or tell that they
// need longer. A next value that was raised and a sequence that was created again are not covered by the skip after a
// loss.
func (rw roundIO) unconfirmed() time.Duration {
	left := rw.putBackLeft()
	//mutant:s36-takes-before by TestFamilyIsReadBeforeItsSections -> if false {
	if !rw.losses.HasSettled() { // the confirming time may have ended in the middle of this round
		left = max(left, time.Millisecond)
	}
	slot := rw.issuer.cfg.Tenure.Slot(rw.session)
	if slot.Path == "" {
		return max(left, rw.issuer.cfg.Follow)
	}
	//mutant:s11-no-wait-after-a-gap by seqsim -> return left
	return max(left, slot.Wait)
}

// putBackLeft returns the time for which other nodes may still put back what they know better (S9).
func (rw roundIO) putBackLeft() time.Duration {
	return rw.losses.PutBackLeft(rw.issuer.cfg.Elapsed.Now(), rw.cluster.ConfirmTime)
}
