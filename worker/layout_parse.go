package worker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseLayout reads a layout as users write it: a preset's name ("leaf",
// "sonyflake"), fields
//
//	time=41@1ms,datacenter=5,worker=5,sequence=12,epoch=1288834974657
//
// or a preset's name with fields to change, as in "leaf,epoch=2026-01-01". The
// epoch is in Unix milliseconds or a date.
//
// Fields have the order in which they are written, the first at the top. The time is the
// top field wherever it is written. A field that is left out has its width and place in the
// default layout, where only time, worker and sequence have bits. After a preset's name the
// order is the preset's, unless order=written is given. Errors wrap ErrLayout.
func ParseLayout(s string) (Layout, error) {
	s = strings.TrimSpace(s)
	l, fields, named := Leaf(), strings.Split(s, ","), false
	if first := strings.TrimSpace(fields[0]); !strings.Contains(first, "=") {
		i := slices.IndexFunc(Presets(), func(p Preset) bool { return strings.EqualFold(p.Name, first) })
		if i < 0 {
			return Layout{}, fmt.Errorf("%w: %q is not a preset (%s). Use a preset, or fields such as "+
				"time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=%d", ErrLayout, first, presetNames(),
				int64(twitterEpoch))
		}
		l, fields, named = Presets()[i].Layout, fields[1:], true
	}
	var written []Field
	seen := map[string]bool{}
	for _, part := range fields {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if seen[name] {
			return Layout{}, fmt.Errorf("%w: %s is given twice", ErrLayout, name)
		}
		seen[name] = true
		if err := l.setField(name, value); err != nil {
			return Layout{}, fmt.Errorf("%w: %s=%s: %v", ErrLayout, name, value, err)
		}
		if i := slices.IndexFunc(defaultOrder[:], func(f Field) bool { return f.String() == name }); i >= 0 {
			written = append(written, defaultOrder[i])
		}
	}
	if !named || seen["order"] {
		l.Order = orderOf(written)
	}
	if err := l.Validate(); err != nil {
		return Layout{}, err
	}
	return l.canonical(), nil
}

// orderOf returns the order of all fields if only some were written. The others get the
// place that they have in the default layout: worker and sequence at the end, with the
// worker before the sequence. datacenter goes directly before the worker, and rollback and
// segment go to the top. Example: sequence and worker become rollback, segment, sequence,
// datacenter, worker.
func orderOf(written []Field) Order {
	order := slices.Clone(written)
	insert := func(f, before Field) {
		if slices.Contains(order, f) {
			return
		}
		i := slices.Index(order, before)
		if i < 0 {
			i = len(order)
		}
		order = slices.Insert(order, i, f)
	}
	insert(FieldWorker, FieldSequence)
	insert(FieldSequence, FieldTime) // order has no time: at the end
	insert(FieldDatacenter, FieldWorker)
	for _, f := range []Field{FieldSegment, FieldRollback} {
		if !slices.Contains(order, f) {
			order = slices.Insert(order, 0, f)
		}
	}
	return Order(order)
}

func presetNames() string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func (l *Layout) setField(name, value string) (err error) {
	switch name {
	case "time":
		bits, unit, timed := strings.Cut(value, "@")
		if timed {
			if l.Unit, err = time.ParseDuration(unit); err != nil {
				return fmt.Errorf("the tick must be a duration such as 1ms, 10ms or 1s")
			}
		}
		l.TimeBits, err = parseBits(bits)
	case "rollback":
		l.RollbackBits, err = parseBits(value)
	case "segment":
		l.SegmentBits, err = parseBits(value)
	case "datacenter":
		l.DatacenterBits, err = parseBits(value)
	case "worker":
		l.WorkerBits, err = parseBits(value)
	case "sequence":
		l.SequenceBits, err = parseBits(value)
	case "epoch":
		l.Epoch, err = parseEpoch(value)
	case "order":
		if value != orderWritten {
			err = fmt.Errorf("it must be %q: fields have the order in which they are written", orderWritten)
		}
	default:
		err = fmt.Errorf("unknown field. Use time, rollback, segment, datacenter, worker, sequence or epoch")
	}
	return err
}

func parseBits(s string) (uint8, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n > usableBits {
		return 0, fmt.Errorf("the width must be 0 to %d bits", usableBits)
	}
	return uint8(n), nil
}

func parseEpoch(s string) (int64, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ms, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("the epoch must be Unix milliseconds (such as %d) "+
		"or a date (2020-01-01, 2020-01-01T00:00:00Z)",
		int64(twitterEpoch))
}

// orderWritten is the value of "order" with which the string of a layout ends if its fields
// are not in the usual order. ParseLayout needs it only after a preset's name. Releases
// that know only the usual order refuse such a string, instead of reading the fields in
// that order.
const orderWritten = "written"

// String returns the layout in the form that ParseLayout reads, always in full. Two layouts
// are equal exactly if their strings are. Cluster records and state files hold the string
// and are compared with it. So the string of a layout in the usual order, without rollback
// and segment, must stay as it was in the first release.
func (l Layout) String() string {
	l = l.canonical()
	var b strings.Builder
	fmt.Fprintf(&b, "time=%d@%s", l.TimeBits, l.Unit)
	for _, f := range l.order() {
		if l.inText(f) {
			fmt.Fprintf(&b, ",%s=%d", f, l.Bits(f))
		}
	}
	fmt.Fprintf(&b, ",epoch=%d", l.Epoch)
	if l.Order != (Order{}) {
		b.WriteString(",order=" + orderWritten)
	}
	return b.String()
}
