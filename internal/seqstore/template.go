package seqstore

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

// A template is a record whose name ends with *, such as order:*. It issues no values itself. If a node is
// asked for an unknown name that a template matches, it creates the sequence with the template's values and
// settings. Among several templates that match, the one with the longest name counts.

// newRecord returns the record of a sequence that did not exist.
func newRecord(m sequence.Map, s Settings, st State) Record {
	return Record{ID: nonce(), Map: m, Settings: s, Credit: s.ceiling().Burst(), At: st.Time, Gen: st.Purged, Incarnation: st.Incarnation, Above: -1}
}

// withPeak returns a new record with its peak: nothing above the burst can have been issued.
func (r Record) withPeak() Record {
	r.PeakFrom, r.PeakAt = r.Next+sequence.Ceiling(r.HardCeiling).Burst(), r.At
	return r
}

// frozenTemplate returns the refusal of a template from before a loss of data, and nil for another. A sequence that
// the template has created may be lost, and would begin again.
func (r Record) frozenTemplate(name string, incarnation int64) *Refusal {
	if r.Incarnation == incarnation {
		return nil
	}
	if r.Scatter > 0 { // a forgotten sequence would have another key, and so its values again in another order
		return &Refusal{Reason: Frozen, Text: fmt.Sprintf("ZooKeeper has lost data, and perhaps scattered sequences that the template %s had created. Delete the template, and create it again with a --start above %d", name, r.Highest(0))}
	}
	return &Refusal{Reason: Frozen, Text: fmt.Sprintf("ZooKeeper has lost data, and perhaps sequences that the template %s had created. Set the first value of new ones: flaked seq set %[1]s --next N --vouch-after-loss", name)}
}

// create returns the template after it has created a sequence, and the sequence. name is the template's.
func (r Record) create(name string, st State) (template, created Record, refusal *Refusal) {
	if refusal := r.frozenTemplate(name, st.Incarnation); refusal != nil {
		return Record{}, Record{}, refusal
	}
	if r.Names >= r.MaxNames {
		return Record{}, Record{}, &Refusal{Reason: NoSequence, Text: fmt.Sprintf("the template %s has created %d sequences, as many as it may. Raise that: flaked seq set %[1]s --max-names N", name, r.Names)}
	}
	created = newRecord(r.Map, r.Settings, st)
	created.Mode, created.Next, created.Above = r.Mode, r.Next, r.Above
	r.Names++
	return r, created.withPeak(), nil
}

// byTemplate creates a sequence that requests wait for, if there is a template for it. v is what was read of the
// sequence. changed means that its record must be read again.
func (i *Issuer) byTemplate(ctx context.Context, s *series, v view, unconfirmed time.Duration) (changed bool, refusal *Refusal, err error) {
	s.mu.Lock()
	wanted := v.record == nil && s.known == nil && len(s.waiting) > 0
	s.mu.Unlock()
	if !wanted {
		return false, nil, nil
	}
	name, found, stat, err := i.templateOf(ctx, s.name)
	if err != nil || found == nil {
		return false, nil, err
	}
	t := i.named(name)
	switch older, lost := t.compare(found, *v.state); {
	case older && !lost:
		return false, nil, &lostError{reason: "the record of template " + name + " is older than before"}
	case older, unconfirmed > 0:
		return false, confirming(max(unconfirmed, time.Second)), nil
	}
	template, created, refusal := found.create(name, *v.state)
	if refusal != nil {
		return false, refusal, nil
	}
	template = commit{record: template}.written(i.cfg.Nonce(), i.cfg.By)
	created = commit{record: created}.written(i.cfg.Nonce(), i.cfg.By)
	created, key := created.withKey()
	hold := i.cfg.Tenure.Hold(i.session)
	if !hold.mayTake() {
		return true, nil, nil
	}
	ops := append(append(v.checks(), hold.check()), setRecord(name, template, stat.Version)...)
	err = i.writeCreated(ctx, ops, s.name, created, key)
	switch {
	case err == nil:
		t.change(func() { t.know(template); t.incarnation = v.incarnation() })
		i.cfg.Log.Info("a template has created a sequence", "sequence", s.name, "template", name, "created", template.Names, "max_names", template.MaxNames)
	case outpaced(err):
		err = nil
	}
	return err == nil, nil, err
}

// writeCreated writes a new record and its key together with ops.
func (i *Issuer) writeCreated(ctx context.Context, ops []zkstore.Op, name string, r Record, key []zkstore.Op) error {
	if err := i.cfg.Store.EnsureRoot(ctx, r.dirs(name)...); err != nil {
		return err
	}
	return i.cfg.Store.Multi(zkstore.OnSession(ctx, i.session), append(append(ops, key...), zkstore.CreateOp{Path: recordPath(name), Data: r.marshal()})...)
}

// compare reports whether a record that was read is older than the one that the node knows, and whether the node
// is about to put its own back.
func (s *series) compare(found *Record, st State) (older, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return judge(found, s.known, st.Purged) == foundLost, st.Incarnation > s.incarnation
}

// templateOf reads the template for a name. found is nil if there is none.
func (i *Issuer) templateOf(ctx context.Context, name string) (template string, found *Record, stat zkstore.Stat, err error) {
	names := sequence.Templates(name)
	if len(names) == 0 {
		return "", nil, stat, nil
	}
	paths := make([]string, len(names))
	for k, n := range names {
		paths[k] = recordPath(n)
	}
	all, err := i.cfg.Store.GetAll(ctx, paths...)
	if err != nil {
		return "", nil, stat, err
	}
	for k, f := range all {
		if !f.Found {
			continue
		}
		r, err := parseRecord(f.Data)
		if err != nil {
			return "", nil, stat, err
		}
		if r.Kind() == Template {
			return names[k], &r, f.Stat, nil
		}
	}
	return "", nil, stat, nil
}
