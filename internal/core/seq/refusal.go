package seq

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/store"
)

// Reason says in one word why a node answers no value. The reasons are words on the wire.
type Reason string

const (
	// NoSequence: no sequence has this name.
	NoSequence Reason = "no-sequence"
	// NoBlock: the node cannot reach ZooKeeper, and has no positions left or has held them for as long as it may.
	NoBlock Reason = "no-block"
	// CeilingReached: the nodes have taken as many positions as the ceiling allows.
	CeilingReached Reason = "ceiling"
	// Confirming: ZooKeeper was reached again a short time ago, and may have lost data.
	Confirming Reason = "confirming"
	// Frozen: an operator must act: ZooKeeper has lost data or a map's key, or a record is damaged.
	Frozen Reason = "frozen"
	// Exhausted: the next value would be above max.
	Exhausted Reason = "exhausted"
	// Unknown: the positions were sent to ZooKeeper, and it is not known whether they were written.
	Unknown Reason = "unknown"
	// WrongMode: the sequence cannot answer this kind of request.
	WrongMode Reason = "wrong-mode"
	// TooManyNames: clients ask for more unknown names than the node looks up.
	TooManyNames Reason = "too-many-names"
	// NotOwner: another node has passed the request on, and this one does not have the ownership that it names.
	NotOwner Reason = "not-owner"
	// NoOwner: the owner of the ordered sequence does not answer, and its lease has not ended.
	NoOwner Reason = "no-owner"
	// TooMany: one request asks for more than the sequence can ever give at once.
	TooMany Reason = "too-many"
)

// reasons are all reasons.
var reasons = [...]Reason{
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

// reason returns the reason, and "" for no refusal.
func (r *Refusal) reason() Reason {
	if r == nil {
		return ""
	}
	return r.Reason
}

func newRefusal(reason Reason, retryAfter time.Duration, format string, a ...any) *Refusal {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, a...), RetryAfter: retryAfter}
}

func noSequence(name string) *Refusal {
	return newRefusal(NoSequence, 0, "there is no sequence %s. Create it first", name)
}

func allCreated(template string, names int64) *Refusal {
	return newRefusal(NoSequence, 0, "the template %s has created %d sequences, as many as it may", template, names)
}

func noKeys(name string) *Refusal {
	return newRefusal(WrongMode, 0, "keys are for strict sequences, and %s is not one. Leave the key out", name)
}

func noRange(name string) *Refusal {
	return newRefusal(WrongMode, 0,
		"the values of %s are salted or scattered, so no range of them exists. Use NEXT with a count", name)
}

func tooMany(most int64, advice string) *Refusal {
	return newRefusal(TooMany, 0, "the sequence gives at most %d values at once. Ask for fewer%s", most, advice)
}

func tooManyNames() *Refusal {
	return newRefusal(TooManyNames, time.Second, "too many unknown sequences are asked for. Retry later")
}

func (r Record) overCeiling(waitMs int64) *Refusal {
	return newRefusal(CeilingReached, time.Duration(waitMs)*time.Millisecond,
		"the sequence has reached its ceiling of %d values a second. Retry, or raise the ceiling", r.ceiling())
}

func (r Record) exhausted() *Refusal {
	return newRefusal(Exhausted, 0, "the sequence has reached its max %d. Raise it", r.Max)
}

func confirming(left time.Duration) *Refusal {
	return newRefusal(Confirming, left,
		"this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node")
}

// The texts of noBlock say why the node has no positions.
const (
	textUnreachable = "this node holds no values of the sequence, and ZooKeeper cannot be reached. " +
		"Retry, or try another node"
	textQuota = "this node holds no values of the sequence, and ZooKeeper gives none, because a quota is reached. " +
		"Raise the quota"
	textHold     = "ZooKeeper has not been reached for longer than this sequence allows. Retry when it is back"
	textDisk     = "the state directory of this node does not answer in time. Retry, or try another node"
	textPatience = "ZooKeeper did not give this node any values in time. Retry, or try another node"
)

// noBlockAfter is the refusal of requests that wait when ZooKeeper has failed with err.
func noBlockAfter(err error) *Refusal {
	if errors.Is(err, store.ErrQuota) {
		return noBlock(textQuota)
	}
	return noBlock(textUnreachable)
}

func noBlock(why string) *Refusal { return newRefusal(NoBlock, time.Second, "%s", why) }

// unknown: n positions may have been taken for requests that nobody can answer any more.
func unknown(n int64, name string) *Refusal {
	return newRefusal(Unknown, time.Second,
		"ZooKeeper has not answered in time, so values of %s may be missing: %d. Retry, or try another node", name, n)
}

func notOwner(name string) *Refusal {
	return newRefusal(NotOwner, 0, "this node is not the owner of %s that the request names. Ask again", name)
}

// noOwner: address is that of the owner, "" for none, and why what happened there. own: this node has the same address.
func noOwner(name, address string, own bool, why error) *Refusal {
	if address == "" {
		return newRefusal(NoOwner, time.Second, "the node that owns %s has no address at which this one can ask it. "+
			"Advertise one there, or ask that node", name)
	}
	switch {
	case own:
		why = errOwnAddress
	case why == nil:
		why = errSilent
	}
	return newRefusal(NoOwner, time.Second, "the node at %s owns %s, and does not answer this one: %s. Retry, or ask "+
		"that node. If it runs, make it advertise an address that this node reaches, and give this node a token that "+
		"it accepts",
		address, name, oneLine(why))
}

// oneLine returns the text of an error in the words of a reply, which is one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// unknownOwner: the node at this address was asked for n positions, and may have counted them.
func unknownOwner(name, address string, n int64) *Refusal {
	return newRefusal(Unknown, time.Second, "the owner of %s at %s has not answered, so values may be missing: %d. "+
		"Retry, or try another node", name, address, n)
}

func frozen(skip int64) *Refusal {
	return newRefusal(Frozen, 0, "ZooKeeper has lost data, and up to %d values of this sequence may have been "+
		"issued since. An operator must say where it goes on", skip)
}

func frozenStrict() *Refusal {
	return newRefusal(Frozen, 0, "ZooKeeper has lost data, and later values of this sequence may have been issued. "+
		"An operator must find out the highest one, and say where the sequence goes on")
}

func frozenTemplate(name string) *Refusal {
	return newRefusal(Frozen, 0, "ZooKeeper has lost data, and perhaps sequences that the template %s had created. "+
		"An operator must set the first value of new ones", name)
}

// frozenScattered: a sequence that was lost would have another key, and so its values again in another order.
func frozenScattered(name string, highest int64) *Refusal {
	return newRefusal(Frozen, 0, "ZooKeeper has lost data, and perhaps scattered sequences that the template %s had "+
		"created. Delete the template, and create it again with a start above %d", name, highest)
}

func lostKey(name string) *Refusal {
	return newRefusal(Frozen, 0, "the key of sequence %s is missing in ZooKeeper, and this node does not know it. "+
		"Start a node that does, or delete the sequence and create it again", name)
}

func damaged(name, path string) *Refusal {
	return newRefusal(Frozen, 0, "sequence %s needs a record in ZooKeeper that is damaged. Restore or remove it: %s",
		name, path)
}

func unknownMode(name, path string) *Refusal {
	return newRefusal(Frozen, 0, "sequence %s needs a record of a mode that this node does not know: %s. "+
		"Ask another node, or upgrade this one", name, path)
}

// damagedError is an ErrDamaged or ErrUnknownMode of the record at path.
type damagedError struct {
	path string
	error
}

func (e damagedError) Error() string { return e.path + ": " + e.error.Error() }
func (e damagedError) Unwrap() error { return e.error }

func damagedAt(path string, err error) error {
	if err == nil {
		return nil
	}
	return damagedError{path, err}
}
