package worker

import "fmt"

// Field is one of the fields of an ID.
type Field uint8

// These are the fields. FieldTime is always at the top, so that IDs sort by the time when
// they were made.
const (
	FieldTime Field = iota
	FieldRollback
	FieldSegment
	FieldDatacenter
	FieldWorker
	FieldSequence
)

// String returns the field's name in a layout.
func (f Field) String() string {
	return [...]string{"time", "rollback", "segment", "datacenter", "worker", "sequence"}[f]
}

// get returns the value of one field.
func (f Fields) get(field Field) int64 {
	return [...]int64{int64(f.Tick), f.Rollback, f.Segment, f.Datacenter, f.Worker, f.Sequence}[field]
}

// Order lists the fields below the time, from the top.
type Order [5]Field

// defaultOrder is the order that the zero Order stands for.
var defaultOrder = Order{FieldRollback, FieldSegment, FieldDatacenter, FieldWorker, FieldSequence}

func (o Order) valid() bool {
	if o == (Order{}) {
		return true
	}
	var seen [FieldSequence + 1]bool
	for _, f := range o {
		if f == FieldTime || f > FieldSequence || seen[f] {
			return false
		}
		seen[f] = true
	}
	return true
}

func (l Layout) order() Order {
	if l.Order == (Order{}) {
		return defaultOrder
	}
	return l.Order
}

// Bits returns the width of a field.
func (l Layout) Bits(f Field) uint8 {
	return [...]uint8{l.TimeBits, l.RollbackBits, l.SegmentBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits}[f]
}

// shift returns the number of bits below a field.
func (l Layout) shift(f Field) uint8 {
	if f == FieldTime {
		return l.timeShift()
	}
	order, below := l.order(), uint8(0)
	for i := len(order) - 1; order[i] != f; i-- {
		below += l.Bits(order[i])
	}
	return below
}

// Part is one field and its place in an ID.
type Part struct {
	Field Field
	Bits  uint8
	// Shift is the number of bits below the field.
	Shift uint8
}

// Parts returns the fields that have bits, from the top.
func (l Layout) Parts() []Part {
	parts := []Part{{FieldTime, l.TimeBits, l.timeShift()}}
	for _, f := range l.order() {
		if l.Bits(f) > 0 {
			parts = append(parts, Part{f, l.Bits(f), l.shift(f)})
		}
	}
	return parts
}

// canonical returns the layout with a canonical order. A field without bits has no place in an
// ID, so canonical places it by rule. Then layouts that make the same IDs are equal. The rule: rollback at the top, the
// segment there too or below a rollback at the top, the datacenter above the worker, the sequence at the bottom.
// Example: if only worker and sequence have bits, each order with the worker above the
// sequence becomes the zero Order.
func (l Layout) canonical() Layout {
	if !l.Order.valid() {
		return l
	}
	var order []Field
	if l.RollbackBits == 0 {
		order = append(order, FieldRollback)
	}
	segment := l.SegmentBits == 0 // yet to be placed by rule
	for _, f := range l.order() {
		if l.Bits(f) == 0 && f != FieldWorker {
			continue
		}
		if segment && f != FieldRollback {
			order, segment = append(order, FieldSegment), false
		}
		if f == FieldWorker && l.DatacenterBits == 0 {
			order = append(order, FieldDatacenter)
		}
		order = append(order, f)
	}
	if l.SequenceBits == 0 {
		order = append(order, FieldSequence)
	}
	if l.Order = Order(order); l.Order == defaultOrder {
		l.Order = Order{}
	}
	return l
}

// inText reports whether the text of the layout names the field. It names rollback and
// segment only if they have bits, and the others always.
func (l Layout) inText(f Field) bool {
	return f != FieldRollback && f != FieldSegment || l.Bits(f) > 0
}

// widths returns the fields and their bits as text, for messages.
func (l Layout) widths() string {
	s := fmt.Sprintf("time=%d", l.TimeBits)
	for _, f := range l.order() {
		if l.inText(f) {
			s += fmt.Sprintf(" %s=%d", f, l.Bits(f))
		}
	}
	return s
}
