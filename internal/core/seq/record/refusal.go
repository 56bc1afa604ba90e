package record

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// Reason says in one word why a node answers no value. The reasons are words on the wire.
type Reason string

const (
	// NoSequence: no sequence has this name.
	NoSequence Reason = "no-sequence"
	// NoBlock: the node has no positions that it may issue, because ZooKeeper or the node's disk does not answer, or a
	// quota is reached.
	NoBlock Reason = "no-block"
	// CeilingReached: the nodes have taken as many positions as the ceiling allows.
	CeilingReached Reason = "ceiling"
	// Confirming: ZooKeeper was reached again a short time ago, and may have lost data.
	Confirming Reason = "confirming"
	// Frozen: an operator must act: ZooKeeper has lost data or a map's key, or this node cannot use a record: it is
	// damaged, or of an unknown mode.
	Frozen Reason = "frozen"
	// Exhausted: the next value would be above max.
	Exhausted Reason = "exhausted"
	// Unknown: the positions were sent to ZooKeeper, and it is not known whether they were written.
	Unknown Reason = "unknown"
	// WrongMode: the sequence cannot answer this kind of request.
	WrongMode Reason = "wrong-mode"
	// TooManyNames: clients ask for more unknown names than the node looks up.
	TooManyNames Reason = "too-many-names"
	// NotOwner: another node has forwarded the request, and this one does not have the ownership that it names.
	NotOwner Reason = "not-owner"
	// NoOwner: the owner of the ordered sequence gives this node no values: it does not answer, has no address, or
	// refuses this node's token.
	NoOwner Reason = "no-owner"
	// TooMany: one request asks for more than the sequence can ever give at once.
	TooMany Reason = "too-many"
)

// Reasons are all reasons.
var Reasons = [...]Reason{
	NoSequence, NoBlock, CeilingReached, Confirming, Frozen, Exhausted, Unknown, WrongMode, TooManyNames, TooMany,
	NotOwner, NoOwner,
}

// codes are the error codes of the reasons, which tell a client what to do next.
var codes = map[Reason]ids.Code{
	NoSequence: ids.ERR, TooMany: ids.ERR, Frozen: ids.ERR, WrongMode: ids.ERR,
	NoBlock: ids.NOTREADY, CeilingReached: ids.NOTREADY, Confirming: ids.NOTREADY,
	TooManyNames: ids.NOTREADY, Unknown: ids.NOTREADY, NotOwner: ids.WRONGNODE, NoOwner: ids.NOTREADY,
	Exhausted: ids.EXHAUSTED,
}

// Refusal is the error of a request that gets no value. It wraps the *ids.ReplyError that a client gets.
type Refusal struct {
	Reason Reason
	// Text says what happened and what to do.
	Text string
	// RetryAfter is the time after which a retry may succeed. 0: not known.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string { return r.Unwrap().Error() }

func (r *Refusal) Unwrap() error {
	text := "reason=" + string(r.Reason)
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" retry_after_ms=%d", max(1, r.RetryAfter.Milliseconds()))
	}
	return replies.New(codes[r.Reason], text+" "+r.Text)
}

// Why returns the reason, and "" for no refusal.
func (r *Refusal) Why() Reason {
	if r == nil {
		return ""
	}
	return r.Reason
}

// Refuse returns a refusal with a text of this format. retryAfter may be 0: see Refusal.
func Refuse(reason Reason, retryAfter time.Duration, format string, a ...any) *Refusal {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, a...), RetryAfter: retryAfter}
}

func allCreated(template string, names int64) *Refusal {
	return Refuse(NoSequence, 0, "the template %s has created %d sequences, as many as it may", template, names)
}

func (r Record) overCeiling(waitMs int64) *Refusal {
	return Refuse(CeilingReached, time.Duration(waitMs)*time.Millisecond,
		"the sequence has reached its ceiling of %d values a second. Retry, or raise the ceiling, up to the hard one",
		r.CeilingInForce())
}

// Exhausted returns the refusal for a sequence without positions.
func (r Record) Exhausted() *Refusal {
	return Refuse(Exhausted, 0, "the sequence has reached its max %d. Raise it", r.Max)
}

func frozen(skip int64) *Refusal {
	return Refuse(Frozen, 0, "ZooKeeper has lost data, and up to %d values of this sequence may have been "+
		"issued since. An operator must say where it goes on", skip)
}

func frozenStrict() *Refusal {
	return Refuse(Frozen, 0, "ZooKeeper has lost data, and later values of this sequence may have been issued. "+
		"An operator must find out the highest one, and say where the sequence goes on")
}

func frozenTemplate(name string) *Refusal {
	return Refuse(Frozen, 0, "ZooKeeper has lost data, and perhaps sequences that the template %s had created. "+
		"An operator must set the first value of new ones", name)
}

// frozenScattered: a sequence that was lost would have another key, and so its values again in another order.
func frozenScattered(name string, highest int64) *Refusal {
	return Refuse(Frozen, 0, "ZooKeeper has lost data, and perhaps scattered sequences that the template %s had "+
		"created. Delete the template, and create it again with a start above %d", name, highest)
}
