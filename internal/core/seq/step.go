package seq

import (
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// view is the records that a decision needs, as they were read together.
type view struct {
	mode.View
	leader   int64          // a time of ZooKeeper's leader before the read, Unix ms: see roundIO.lookState
	before   *record.Record // what the node knew of the record when the read was sent
	template *template      // that may create the sequence, nil: there is none
}

// What follows decides which step of a round is due for one series. It does no I/O. Methods of series are called with
// Mu held, but for wants, urgency and decide.

// step is the write that is due for a series, if any.
type step struct {
	kind stepKind
	// ops are made in one transaction with the checks of the view, when the paths dirs exist.
	ops  []store.Op
	dirs []string
	// Write is that of a modeStep.
	mode.Write
	// done is called when a step that is no modeStep was made. It may be nil.
	done func(hclog.Logger)
}

type stepKind int

const (
	noStep      stepKind = iota
	putBackStep          // puts back what ZooKeeper has lost
	createStep           // creates a sequence by its template
	modeStep             // of the mode: takes positions or gives them back, refreshes the credit, or renews a lease
)

// stepOf returns the step that writes w over what was read. Keys are written together with the positions (S16).
func stepOf(w mode.Write, name string, v mode.View, nonce, by string) step {
	w.Record = w.Record.Stamped(nonce, by)
	st := step{kind: modeStep, Write: w}
	//mutant:s2-any-version by seqsim -> st.ops = record.SetOps(name, w.Record, store.AnyVersion)
	st.ops = record.SetOps(name, w.Record, v.Stat.Version)
	if w.RequestKeys != nil {
		st.ops = append(st.ops, w.RequestKeys.Ops(w.Record.ID)...)
		st.dirs = w.RequestKeys.Dirs()
	}
	return st
}

// part is the write of one series in a transaction with others.
type part struct {
	s *series
	v mode.View
	t step
}

// extraReads says which other records a decision needs: the request keys and the map key of the records with these IDs,
// "" for none, and the templates with these names.
type extraReads struct {
	requestKeys, mapKey string
	templates           []string
}

// wants returns what else must be read for a decision. now is ns of AtMost.
func (s *series) wants(v view, now int64) (w extraReads) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	r, lost := v.Record, s.putsBack(v)
	if lost && (r == nil || s.Known.Newer(*r)) {
		r = s.Known // it is put back
	}
	if r == nil {
		if len(s.Waiting) > 0 && s.Known == nil {
			w.templates = positions.Patterns(s.Name)
		}
		return w
	}
	if r.HasMapKey() && s.mapKeyDue(*r, now) {
		w.mapKey = r.ID
	}
	if r == v.Record && r.Mode.HasRequestKeys() && v.RequestKeys == nil && (s.HaveKeys() || lost && len(s.requestKeys()) > 0) {
		w.requestKeys = r.ID
	}
	return w
}

// urgency returns how soon a round must work on the series. sit.AtMost is the present time.
func (s *series) urgency(sit mode.Situation) mode.Urgency {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	//mutant:strict-keeps-no-pause by seqsim -> case false:
	case sit.AtMost < s.PausedUntil:
		return mode.Idle
	case len(s.Waiting) > 0, s.Stale && s.owned() != nil: // the lease must not end
		return mode.Awaited
	case s.Stale, s.hasOpenWrites():
		return mode.Needed
	case s.Known.Kind() != record.Sequence, !s.MayTry(sit.AtMost) && s.owned() == nil:
		return mode.Idle
	}
	if u := s.Issuing.Urgency(sit); u != mode.Idle || !s.mayHaveMore(sit) {
		return u
	}
	return mode.Reread
}

// mayHaveMore reports whether all values were taken when the record was read, so long ago that it should be read again:
// another node may have given some back.
func (s *series) mayHaveMore(sit mode.Situation) bool {
	return s.Known.Next >= s.Known.Positions() && s.Last == nil &&
		sit.AtMost-s.recordReadAt >= int64(refreshInterval(sit.Spread, 0))
}

// hasOpenWrites reports whether the outcome of a write is not known, but can be found out by a read.
func (s *series) hasOpenWrites() bool {
	m := s.stocked() // the other modes give such writes up (S27, O3)
	return m != nil && len(m.attempts) > 0
}

// decide applies what was read, and returns the step that is due. It does no I/O. It returns a *lostError if the record
// shows that ZooKeeper has lost data. decide wakes the requests that NextWrite leaves in Waiting, before the write is
// made. They call Serve again, and wait until Wrote.
func (s *series) decide(v view, sit mode.Situation) (st step, err error) {
	sit.SeqTime = max(sit.SeqTime, v.State.Time)
	s.Mu.Lock()
	s.DueFrom, s.DueAt = 0, 0
	st, refusal, err := s.owed(v, sit)
	s.Mu.Unlock()
	if err != nil || st.kind != noStep {
		return st, err
	}
	s.change(func() {
		s.applyRead(v, sit, refusal)
		switch {
		case s.Known.Kind() != record.Sequence:
		//mutant:s21-no-key by TestNobodyKnowsTheKey -> case false:
		case s.Known.HasMapKey() && s.mapKey == nil: // under another key, positions would get values that others had (S21)
			s.Refuse(lostKey(s.Name), sit.AtMost)
		case sit.Unconfirmed > 0 && s.owned() == nil:
			s.waitUnconfirmed(sit)
		default:
			if t := s.Issuing.NextWrite(v.View, sit); t != nil {
				st = stepOf(*t, s.Name, v.View, sit.Nonce, sit.By)
			}
		}
	})
	return st, nil
}

// waitUnconfirmed refuses requests while the node may not take positions. It pauses the series also if no request needs
// any: until then, no round could do anything for it.
func (s *series) waitUnconfirmed(sit mode.Situation) {
	var refusal *record.Refusal
	if s.Issuing.Lacks() {
		refusal = mode.Confirming(sit.Unconfirmed)
	}
	s.RefuseUntil(refusal, sit.AtMost, sit.AtMost+int64(min(sit.Unconfirmed, time.Second)))
}

// errReadBefore: what was read is older than what another step of this round has written, and must be read again. It
// shows no loss of data.
var errReadBefore = errors.New("read before it was written")

// lostError: what was read shows that ZooKeeper has lost data. later: another node has noticed that already.
type lostError struct {
	reason string
	later  bool
}

func (e *lostError) Error() string { return e.reason }

// owed returns the step that comes before all others, if any: it puts back what ZooKeeper has lost, or creates the
// sequence. If there is a template that must not create it now, owed returns the refusal.
//
// v.Record is the record in ZooKeeper, s.Known the one that the node knows now, and v.before the one that it knew when
// the read was sent. A record that is older than known shows a loss only if it is older than before, too. Otherwise the
// node has learned known since, from a write of this round.
func (s *series) owed(v view, sit mode.Situation) (st step, refusal *record.Refusal, err error) {
	// Another node may have taken the same positions (S12). It does not matter which node has noticed the loss first.
	//mutant:s12-keeps-a-rivals-block by TestBlockThatARivalHasTakenIsDropped -> if s.Known != nil && v.Record != nil && s.Known.Rivals(*v.Record) && !s.putsBack(v) {
	if s.Known != nil && v.Record != nil && s.Known.Rivals(*v.Record) {
		s.drop()
	}
	if st := s.putBack(v, sit); st.kind != noStep {
		return st, nil, nil
	}
	if st, err := s.putAboveJournal(v, sit.Nonce, sit.By); err != nil || st.kind != noStep {
		return st, nil, err
	}
	if record.Compare(v.Record, s.Known, v.State.Purged) == record.Lost {
		if record.Compare(v.Record, v.before, v.State.Purged) != record.Lost {
			return step{}, nil, errReadBefore
		}
		return step{}, nil, &lostError{reason: "the record of sequence " + s.Name + " is missing, or older than before"}
	}
	if v.template != nil {
		return v.template.create(s.Name, v, sit)
	}
	return step{}, nil, nil
}

// applyRead applies what was read. refusal is the reason why a template does not create the sequence.
func (s *series) applyRead(v view, sit mode.Situation, refusal *record.Refusal) {
	s.Stale, s.journaled, s.incarnation, s.recordReadAt = false, nil, v.Incarnation(), max(s.recordReadAt, v.SentAt)
	if record.Compare(v.Record, s.Known, v.State.Purged) == record.Absent {
		s.clearRecord(sit.AtMost)
		if refusal != nil {
			s.foundAbsentAt = longAgoNs
			s.Refuse(refusal, sit.AtMost)
		}
		return
	}
	s.foundAbsentAt = longAgoNs
	before := s.Known
	s.setRecord(*v.Record)
	s.Issuing.Saw(v.View, before, sit)
	s.learnMapKey(v, sit.AtMost)
	if s.Known.Kind() == record.Tombstone {
		s.drop()
	}
}
