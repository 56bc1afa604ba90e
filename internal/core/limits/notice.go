// Package limits holds the times that packages have to agree on, and the
// relations between them that the promise rests on.
package limits

import (
	"fmt"
	"time"
)

// Confirming protects a holder whose record ZooKeeper has lost. A new node on the same
// worker waits for the confirming time. The holder has to notice the loss and freeze
// registration before that time is over. It needs at most
//
//	one heartbeat          its last report may have just been made
//	+ Answer               after this the client looks for another server
//	+ Redial               finding a server that answers
//	+ noticeCalls calls    the rest of the round before, because the next one is timed
//	                       from its end, and the calls up to the freeze
//
// TestNoticeIsBelowTheConfirmingTime checks the sum.
const noticeCalls = restCalls + FreezeCalls

const (
	// restCalls is the number of calls to ZooKeeper that a round makes after its report.
	restCalls = 12
	// FreezeCalls is the largest number of calls that a round makes until its freeze is
	// written.
	FreezeCalls = 8
)

// Round bounds a round of calls, whatever the confirming time.
const Round = 5 * time.Second

// MinSpare is the shortest time that a confirming time must leave beside one heartbeat. A
// server then has 100 ms to answer, which is the least that works on one machine.
const MinSpare = 400 * time.Millisecond

// MinHeartbeat is the shortest heartbeat interval that flaked accepts.
const MinHeartbeat = 10 * time.Millisecond

// DefaultHeartbeat is how often a holder reports to ZooKeeper.
const DefaultHeartbeat = 3 * time.Second

// reconnectTime is the time that the default confirming time leaves a holder to find
// ZooKeeper again, beside two heartbeats.
const reconnectTime = 6 * time.Second

// DefaultConfirm returns the confirming time of a cluster whose slowest heartbeat is
// the one given.
func DefaultConfirm(heartbeat time.Duration) time.Duration { return 2*heartbeat + reconnectTime }

// MinConfirm is the shortest confirming time that any heartbeat fits.
const MinConfirm = MinSpare + MinHeartbeat

// Comfortable is the spare time below which a stall of the machine of half a
// second can keep a holder from noticing a loss in time.
const Comfortable = 3 * time.Second

// Notice says how soon a holder that can reach ZooKeeper notices that ZooKeeper has lost
// data. It does not depend on the session timeout.
type Notice struct {
	Heartbeat time.Duration
	// Answer is how long a server may send nothing while a call waits for it. After that
	// the client looks for another server.
	Answer time.Duration
	// Redial bounds finding a server after a connection was lost: the pause
	// between two rounds, looking names up, and one attempt for each address.
	Redial time.Duration
	// Call is how long each call may take for all of them to fit.
	Call time.Duration
}

// NoticeWithin divides the confirming time. Of the time that one heartbeat leaves, a
// quarter goes to Answer, a quarter to Redial, and three eighths to the calls, Round at
// most. The last eighth is for stalls of the process. NoticeWithin returns a *TooShortError
// if one heartbeat leaves less than MinSpare, or less than another heartbeat.
func NoticeWithin(confirm, heartbeat time.Duration) (Notice, error) {
	spare := confirm - heartbeat
	if spare < MinSpare || spare < heartbeat {
		return Notice{}, &TooShortError{Confirm: confirm, Heartbeat: heartbeat}
	}
	return Notice{Heartbeat: heartbeat, Answer: spare / 4, Redial: spare / 4,
		Call: min(spare*3/8, Round) / noticeCalls}, nil
}

// Default returns the Notice for a client that does not know its cluster yet.
func Default() Notice {
	n, err := NoticeWithin(DefaultConfirm(DefaultHeartbeat), DefaultHeartbeat)
	if err != nil {
		panic(err) // a test has these values
	}
	return n
}

// Pause, Lookup and Dial return the parts of Redial: the pause between two rounds, the time
// for looking names up, and the time for one attempt at each address.
func (n Notice) Pause() time.Duration  { return min(n.Redial/4, time.Second) }
func (n Notice) Lookup() time.Duration { return n.Redial / 4 }
func (n Notice) Dial() time.Duration   { return n.Redial / 2 }

// TooShortError says that a holder could not notice a loss of data within the
// confirming time.
type TooShortError struct{ Confirm, Heartbeat time.Duration }

func (e *TooShortError) Error() string {
	rest := max(MinSpare, e.Heartbeat)
	return fmt.Sprintf("a holder needs up to %s (one heartbeat) + %s (a reconnect and a report) = %s to notice that "+
		"ZooKeeper lost data, which is more than the confirming time, %s",
		e.Heartbeat, rest, e.Heartbeat+rest, e.Confirm)
}

// MaxHeartbeat returns the longest heartbeat interval that fits a confirming time.
func MaxHeartbeat(confirm time.Duration) time.Duration {
	return max(0, min(confirm/2, confirm-MinSpare))
}
