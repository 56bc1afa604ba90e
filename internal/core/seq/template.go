package seq

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// template is a template as it was read.
type template struct {
	series  *series
	record  record.Record
	version int32
	before  *record.Record // what the node knew of it when the read was sent
}

// create returns the step that creates the sequence name, or the refusal if the template must not.
func (t *template) create(name string, v view, sit mode.Situation) (step, *record.Refusal, error) {
	t.series.Mu.Lock()
	older := record.Compare(&t.record, t.series.Known, v.State.Purged) == record.Lost
	lost := v.Incarnation() > t.series.incarnation // the node is about to put its own template back
	t.series.Mu.Unlock()
	switch {
	case older && !lost && record.Compare(&t.record, t.before, v.State.Purged) != record.Lost: // written since, in this round
		return step{}, nil, errReadBefore
	case older && !lost:
		return step{}, nil, &lostError{reason: "the record of template " + t.series.Name + " is older than before"}
	case older, sit.Unconfirmed > 0: // a sequence of this name that is lost may be put back until then
		return step{}, mode.Confirming(max(sit.Unconfirmed, time.Second)), nil
	}
	after, created, refusal := t.record.Create(t.series.Name, *v.State)
	if refusal != nil {
		return step{}, refusal, nil
	}
	after = after.Stamped(sit.Nonce, sit.By)
	created, ops := created.Stamped(sit.Nonce, sit.By).WithMapKey()
	ops = append(ops, record.CreateOp(name, created))
	ops = append(ops, record.SetOps(t.series.Name, after, t.version)...)
	return step{kind: createStep, dirs: created.Dirs(name), ops: ops, done: func(log hclog.Logger) {
		t.series.change(func() {
			t.series.setRecord(after)
			t.series.incarnation = v.Incarnation()
		})
		log.Info("a template has created a sequence", "sequence", name, "template", t.series.Name,
			"created", after.Names, "max_names", after.MaxNames)
	}}, nil, nil
}

// readTemplates reads the records of these names, the longest first, and notes in v the template that may create the
// sequence. The first name counts that is a template or a family, or was a family.
func (rw roundIO) readTemplates(ctx context.Context, v *view, names []string) error {
	paths, before := make([]string, len(names)), make([]*record.Record, len(names))
	for k, name := range names {
		paths[k] = record.Path(name)
		if t := rw.issuer.series.find(name); t != nil {
			t.Mu.Lock()
			before[k] = t.Known
			t.Mu.Unlock()
		}
	}
	found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	for k, name := range names {
		if !found[k].Found {
			continue
		}
		if r, err := record.Parse(found[k].Data); err != nil {
			return record.DamagedAt(record.Path(name), err)
		} else if r.Kind() == record.Family { // the requests that wait find it when they look again
			rw.issuer.families.update(name, &r)
			rw.issuer.series.findOrAdd(name).markStale(true)
			return nil
			//mutant:s22-name-of-a-deleted-family by TestTemplateCreatesNoNameOfADeletedFamily -> } else if false {
		} else if r.SectionCount > 0 { // a family that was deleted has issued values of this name
			return nil
		} else if r.Kind() == record.Template {
			v.template = &template{rw.issuer.series.findOrAdd(name), r, found[k].Stat.Version, before[k]}
			return nil
		}
	}
	return nil
}
