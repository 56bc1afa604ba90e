package seq

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// progress says how far a node has followed the changes of operators, and how far its disk has that. It takes four
// steps. Each needs the one before, and somebody waits for it:
//
//	knowsState  The node has read /seq in this cluster, now or before a restart. So it has records to compare in each
//	            session, and nodes that wait for this one wait for that (S12).
//	compared    In this session and incarnation it has compared all records that it knows: those nodes go on.
//	knewAllAt   It had settled before (S36), so it knew all changes: the hold counts from that time (S5).
//	saved       The witness file has that, too: operators hear of these changes (S25).
//
// The invariant: the witness file has each change and each jump of the sequence time of which operators hear. Else
// ZooKeeper and all processes could lose it at once. So a disk that hangs keeps operators waiting, and nobody else.
//
// For the next process, the witness file has what saved tells of, and the journal has knewAllAt.
//
// Only the goroutine of rounds changes it: see Issuer.publish. Any goroutine loads it.
type progress struct {
	knowsState bool
	// journalLeft: blocks that the process before left in the journal are not compared with the records yet (S35).
	journalLeft bool
	// compared and saved are how far the node had followed the changes at the last such step, nil before the first.
	compared, saved *following
	// knewAllAt is the time at which the last read of /seq of that step was sent, ns of AtMost, longAgoNs for none.
	knewAllAt int64
	// saving is what saved becomes when the present write of the witness file succeeds, nil if none runs. The last
	// write began at saveBegan, ns of AtMost.
	saving    *following
	saveBegan int64
}

// following says how far a node has followed the changes of operators. It does not change.
type following struct {
	coordinator.Change
	session int64
	state   record.State // as it was read
}

// longAgoNs is a time since which every hold and every pause has passed, ns.
const longAgoNs = -1 << 62

// noProgress is that of a node that has read nothing.
func noProgress() progress { return progress{knewAllAt: longAgoNs, saveBegan: longAgoNs} }

// publish changes the progress that all goroutines load. Only the goroutine of rounds calls it.
func (i *Issuer) publish(change func(*progress)) {
	p := *i.progress.Load()
	change(&p)
	i.progress.Store(&p)
}

// knowState notes that the node has read /seq, or remembers it.
func (p *progress) knowState() { p.knowsState = true }

// noteJournalLeft notes whether blocks are left in the journal that must be compared.
func (p *progress) noteJournalLeft(left bool) { p.journalLeft = left }

// resumeHold lets the hold count from a time of an earlier process, until this one knows all changes itself.
func (p *progress) resumeHold(knewAllAt int64) {
	if p.knewAllAt == longAgoNs {
		p.knewAllAt = knewAllAt
	}
}

// compare notes that the node has compared all records that it knows, and so has come to f.
func (p *progress) compare(f *following) { p.compared = f }

// follow notes that the node had settled before it compared, and so knew all changes when it sent a read at this time.
// If the witness file has the changes, and the last jump of the sequence time (S24), operators hear of f at once.
func (p *progress) follow(f *following, sent int64) {
	p.knewAllAt = sent
	//mutant:s25-before-the-disk by TestWitnessOnADiskThatHangs -> if true {
	if p.saved != nil && f.Change == p.saved.Change && f.jumpedWith(p.saved) {
		p.saved = f
	}
}

// saveEvery is the age at which the witness file, and knewAllAt in the journal, are written again although nothing has
// changed. The skip after a loss of data covers the blocks that the witness file lacks.
const saveEvery = time.Minute

// saveDue reports whether the witness file must be written now: it lacks f, to which follow has come, or it is old.
func (p *progress) saveDue(f *following, now int64) bool {
	return p.saving == nil && (p.saved != f || now-p.saveBegan >= int64(saveEvery))
}

// beginSave notes that a write of the witness file begins that will have f.
func (p *progress) beginSave(f *following, now int64) { p.saving, p.saveBegan = f, now }

// endSave notes that the write has ended. It does not count if the node has seen a loss, another session or another
// cluster meanwhile. now is that of follower.following.
func (p *progress) endSave(succeeded bool, now *following) {
	f := p.saving
	p.saving = nil
	if succeeded && now != nil && f.session == now.session && f.Incarnation == now.Incarnation && f.jumpedWith(now) {
		p.saved = f
	}
}

// leaveCluster forgets all steps, because the node has joined another cluster. A write that runs goes on.
func (p *progress) leaveCluster() {
	saving, began := p.saving, p.saveBegan
	*p = noProgress()
	p.saving, p.saveBegan = saving, began
}

// comparison says whether the node has compared all records that it knows in this session: in is the incarnation, nil
// if it has not. compares: it has some to compare, or blocks of its journal. In a new cluster a node has none: else all
// would wait for each other.
func (p *progress) comparison(session int64) (in *int64, compares bool) {
	if f := p.compared; f != nil && f.session == session {
		return &f.Incarnation, false
	}
	//mutant:s35-says-nothing by TestJournalIsSaidToBeCompared -> return nil, p.knowsState
	return nil, p.knowsState || p.journalLeft
}

// followed returns the last change in this session of which operators may hear. Before the session, ZooKeeper may have
// lost changes.
func (p *progress) followed(session int64) coordinator.Change {
	if f := p.saved; f != nil && f.session == session {
		return f.Change
	}
	return coordinator.Change{}
}

// jumpedWith reports whether f and g are of one cluster, and have the same last jump of the sequence time.
func (f *following) jumpedWith(g *following) bool {
	//mutant:s25-of-another-cluster by TestWitnessOfAnotherCluster -> return f.state.Jumped == g.state.Jumped
	return f.state.Jumped == g.state.Jumped && f.state.Cluster == g.state.Cluster
}
