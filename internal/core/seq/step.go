package seq

import (
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// step is the write that is due for a series, if any.
type step struct {
	kind stepKind
	// ops are made in one transaction with the checks of the view, when the paths dirs exist.
	ops  []store.Op
	dirs []string
	// blockWrite is that of a takeStep.
	blockWrite
	// done is called when a step that is no takeStep was made. It may be nil.
	done func(hclog.Logger)
}

type stepKind int

const (
	noStep      stepKind = iota
	restoreStep          // puts back what ZooKeeper has lost
	createStep           // creates a sequence by its template
	takeStep             // takes positions, renews the record, or gives positions back
)

// stepOf returns the step that writes t over what was read. Keys are written together with the positions (S16).
func stepOf(t blockWrite, name string, v sight, nonce, by string) step {
	t.Record = t.Record.Written(nonce, by)
	st := step{kind: takeStep, blockWrite: t}
	//mutant:s2-any-version by seqsim -> st.ops = record.SetOps(name, t.Record, store.AnyVersion)
	st.ops = record.SetOps(name, t.Record, v.Stat.Version)
	if t.keys != nil {
		st.ops = append(st.ops, t.keys.Ops(t.Record.ID)...)
		st.dirs = t.keys.Dirs()
	}
	return st
}

// wants is what a decision needs besides the record: the keys of requests and the key of the records with these IDs,
// and the templates with these names.
type wants struct {
	keys, secret string
	templates    []string
}

// wants returns what else must be read for a decision. now is ns of AtMost.
func (s *series) wants(v view, now int64) (w wants) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, lost := v.Record, s.restores(v)
	if lost && (r == nil || s.known.Newer(*r)) {
		r = s.known // it is put back
	}
	if r == nil {
		if len(s.waiting) > 0 && s.known == nil {
			w.templates = positions.Templates(s.name)
		}
		return w
	}
	if r.HasSecret() && s.secretDue(*r, now) {
		w.secret = r.ID
	}
	if r == v.Record && r.Mode.HasKeys() && v.keys == nil && (s.waitWithKeys() || lost && len(s.keys) > 0) {
		w.keys = r.ID
	}
	return w
}

// urgency returns how soon a round must work on the series. e.sent is the present time.
func (s *series) urgency(e situation) urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.sent < s.notBefore:
		return idle
	case len(s.waiting) > 0, s.stale && s.owned() != nil: // the lease must not end
		return awaited
	case s.stale, s.unsure():
		return needed
	case s.known.Kind() != record.Sequence, e.sent < s.retryAt && s.owned() == nil:
		return idle
	}
	return s.mode.urgency(e)
}

// unsure reports whether the outcome of a write is not known, but can be found out by a read.
func (s *series) unsure() bool {
	m := s.stocked() // the other modes give such writes up (S27, O3)
	return m != nil && len(m.attempts) > 0
}

func (s *series) isStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}

// change calls f while it holds mu, and wakes the requests that wait. They look at the series again.
func (s *series) change(f func()) {
	s.mu.Lock()
	f()
	waiting := s.takeWaiting()
	s.mu.Unlock()
	wakeAll(waiting)
}

// wakeWaiting makes the requests that wait look at the series again.
func (s *series) wakeWaiting() { s.change(func() {}) }

// decide takes over what was read, and returns the step that is due. It does no I/O. It returns a *lostError if the
// record shows that ZooKeeper has lost data.
func (s *series) decide(v view, e situation) (st step, err error) {
	e.now = max(e.now, v.State.Time)
	s.mu.Lock()
	s.lookAt = 0
	st, refusal, err := s.owed(v, e)
	s.mu.Unlock()
	if err != nil || st.kind != noStep {
		return st, err
	}
	s.change(func() {
		s.takeOver(v, e, refusal)
		if s.known.Kind() == record.Sequence {
			st = s.nextStep(v, e)
		}
	})
	return st, nil
}

// errReadBefore: what was read is older than what another step of this round has written, and must be read again. It
// shows no loss of data.
var errReadBefore = errors.New("read before it was written")

// owed returns the step that comes before all others, if any: it puts back what ZooKeeper has lost, or creates the
// sequence. If there is a template that must not create it now, owed returns the refusal.
func (s *series) owed(v view, e situation) (st step, refusal *record.Refusal, err error) {
	if st := s.restore(v, e); st.kind != noStep {
		return st, nil, nil
	}
	if st, err := s.raise(v, e.nonce, e.by); err != nil || st.kind != noStep {
		return st, nil, err
	}
	if record.Compare(v.Record, s.known, v.State.Purged) == record.Lost {
		if record.Compare(v.Record, v.before, v.State.Purged) != record.Lost {
			return step{}, nil, errReadBefore
		}
		//mutant:s12-keeps-a-rivals-block by TestBlockThatARivalHasTakenIsDropped -> if false {
		if v.Record != nil && s.known.Rivals(*v.Record) { // another node may have taken the same positions
			s.drop()
			s.journal.wake()
		}
		return step{}, nil, &lostError{reason: "the record of sequence " + s.name + " is missing, or older than before"}
	}
	if v.template != nil {
		return v.template.create(s.name, v, e)
	}
	return step{}, nil, nil
}

// takeOver takes over what was read. refusal is why a template does not create the sequence.
func (s *series) takeOver(v view, e situation, refusal *record.Refusal) {
	s.stale, s.journaled, s.incarnation, s.readAt = false, nil, v.Incarnation(), max(s.readAt, v.read)
	if record.Compare(v.Record, s.known, v.State.Purged) == record.Absent {
		s.vanish(e.sent)
		if refusal != nil {
			s.absentAt = 0
			s.refuse(refusal, e.sent)
		}
		return
	}
	s.absentAt = 0
	before := s.known
	s.know(*v.Record)
	s.mode.saw(v.sight, before, e)
	s.learnSecret(v, e.sent)
	if s.known.Kind() == record.Tombstone {
		s.drop()
	}
}

// drop drops the positions that the node holds, if any.
func (s *series) drop() {
	s.last = sight{}
	if s.mode != nil {
		s.mode.drop()
	}
}

// freeze notes that the record cannot be used. Until it can, the node issues no value of this sequence. news
// means that the series was not frozen before.
func (s *series) freeze(r *record.Refusal, at int64) (news bool) {
	news = s.refusal.Why() != record.Frozen
	s.stale = false
	s.drop()
	s.refuse(r, at)
	return news
}

// vanish notes that the sequence does not exist.
func (s *series) vanish(at int64) {
	s.known, s.secret, s.keys, s.mode, s.kept, s.journaled = nil, nil, nil, nil, nil, nil
	s.last, s.absentAt = sight{}, at
	s.families.know(s.name, nil)
}

// know takes over a record. Another node may have written it, or an operator.
func (s *series) know(r record.Record) {
	if s.known == nil || s.known.ID != r.ID { // its positions have nothing to do with the old ones
		s.highest, s.secret, s.keys, s.mode = 0, nil, nil, s.start(r.Mode)
	}
	s.last = sight{}
	s.values = s.secret.valuesOf(r)
	s.known, s.highest = &r, max(s.highest, r.Next)
	s.families.know(s.name, &r)
	s.restock()
}

// knowWritten takes over the record of a write that was acknowledged. The mode takes over the block.
func (s *series) knowWritten(t blockWrite, mono int64) {
	s.traceBlock(t)
	s.know(t.Record)
	if t.Block.Len() > 0 {
		s.refuse(nil, mono)
		s.conflicts = 0
		s.blocks++
	}
}

// nextStep returns the step that takes positions for the sequence known, if any.
func (s *series) nextStep(v view, e situation) step {
	//mutant:s21-no-key by TestNobodyKnowsTheKey -> if false {
	if s.known.HasSecret() && s.secret == nil { // under another key, positions would get values that others had (S21)
		s.refuse(lostKey(s.name), e.sent)
		return step{}
	}
	if e.unconfirmed > 0 && s.owned() == nil {
		var refusal *record.Refusal
		if s.mode.lacks() {
			refusal = confirming(e.unconfirmed)
		}
		s.refuse(refusal, e.sent)
		// Also if nothing is refused: until then, no round could do anything for the series.
		s.retryAt = e.sent + int64(min(e.unconfirmed, time.Second))
		return step{}
	}
	if t := s.mode.nextWrite(v.sight, e); t != nil {
		return stepOf(*t, s.name, v.sight, e.nonce, e.by)
	}
	return step{}
}

// template is a template as it was read.
type template struct {
	series  *series
	record  record.Record
	version int32
	before  *record.Record // what the node knew of it when the read was sent
}

// create returns the step that creates the sequence name, or the refusal if the template must not.
func (t *template) create(name string, v view, e situation) (step, *record.Refusal, error) {
	t.series.mu.Lock()
	older := record.Compare(&t.record, t.series.known, v.State.Purged) == record.Lost
	lost := v.Incarnation() > t.series.incarnation // the node is about to put its own template back
	t.series.mu.Unlock()
	switch {
	case older && !lost && record.Compare(&t.record, t.before, v.State.Purged) != record.Lost: // written since, in this round
		return step{}, nil, errReadBefore
	case older && !lost:
		return step{}, nil, &lostError{reason: "the record of template " + t.series.name + " is older than before"}
	case older, e.unconfirmed > 0: // a sequence of this name that is lost may be put back until then
		return step{}, confirming(max(e.unconfirmed, time.Second)), nil
	}
	after, created, refusal := t.record.Create(t.series.name, *v.State)
	if refusal != nil {
		return step{}, refusal, nil
	}
	after = after.Written(e.nonce, e.by)
	created, ops := created.Written(e.nonce, e.by).WithSecret()
	ops = append(ops, record.CreateOp(name, created))
	ops = append(ops, record.SetOps(t.series.name, after, t.version)...)
	return step{kind: createStep, dirs: created.Dirs(name), ops: ops, done: func(log hclog.Logger) {
		t.series.change(func() {
			t.series.know(after)
			t.series.incarnation = v.Incarnation()
		})
		log.Info("a template has created a sequence", "sequence", name, "template", t.series.name,
			"created", after.Names, "max_names", after.MaxNames)
	}}, nil, nil
}
