package seqstore

import (
	"context"
	"errors"
	"fmt"
)

// A held sequence issues no values until an operator starts it. `flaked seq import` creates such sequences, so
// that their next values can be compared with their source when nobody issues there any more.

// held returns the refusal of a held sequence.
func held(name string) *Refusal {
	return &Refusal{Reason: Held, Text: fmt.Sprintf("the sequence %s was imported and is not started. Stop what issued its values before, then run: flaked seq import --verify --start", name)}
}

// ErrNotHeld: the sequence was started before, or never held.
var ErrNotHeld = errors.New("the sequence is not held")

// ErrBehindSource: the next value is below the first one that the source has not issued.
var ErrBehindSource = errors.New("the source has issued the next value")

// Start lets nodes issue the values of a held sequence. first is the first value that its source has not
// issued. Start returns ErrBehindSource if the next value is below it, and ErrNotHeld.
func (o Operator) Start(ctx context.Context, name string, first int64) (Record, error) {
	return o.update(ctx, name, nil, func(st State, old *Record) (Record, error) {
		switch {
		case old == nil || old.DeletedAt != 0:
			return Record{}, ErrNotFound
		case !old.Held:
			return Record{}, ErrNotHeld
		case old.Next < old.PositionAtOrAbove(first):
			return Record{}, ErrBehindSource
		}
		r := *old
		r.Held = false
		if c, due := r.renewal(st.Epoch, o.Now(), 0); due { // else a loss would skip all the time since the import
			r = c.record
		}
		return r, nil
	})
}
