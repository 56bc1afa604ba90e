package worker

import (
	"cmp"
	"fmt"
)

// SequenceStart says where the sequence begins in a tick if the tick before had numbers
// left. After a tick that was used up it is always 0, so that no numbers are lost at the
// ceiling.
type SequenceStart string

const (
	// StartRandom begins at a random number below 1,024. At less than one ID a tick, all IDs
	// would otherwise end in the same bits, and sharding by modulo would always choose the
	// same shard. Layouts with fewer than 2,048 numbers in a tick begin in the lower half.
	StartRandom SequenceStart = "random"
	// StartZero begins at 0, as Twitter's Snowflake does.
	StartZero SequenceStart = "zero"
	// StartCarryOn continues where the last tick ended. If that is past the middle it
	// begins at 0 again, so that a tick always has half of its numbers.
	StartCarryOn SequenceStart = "carry-on"
)

// String returns the word. The zero value is StartRandom.
func (s SequenceStart) String() string { return string(cmp.Or(s, StartRandom)) }

// ParseSequenceStart parses the word for a SequenceStart.
func ParseSequenceStart(text string) (SequenceStart, error) {
	switch s := SequenceStart(text); s {
	case StartRandom, StartZero, StartCarryOn:
		return s, nil
	}
	return "", fmt.Errorf("the first sequence value must be random, zero or carry-on, not %q", text)
}

// SegmentStart says in which segment a tick begins, if the layout has segments. After a
// tick that was used up it is always the first.
type SegmentStart string

const (
	// SegmentZero begins where SequenceStart says, counted over all segments: in the first one, unless carry-on goes on
	// in a later one, or a random start is beyond a short segment.
	SegmentZero SegmentStart = "zero"
	// SegmentRandom begins in a random segment, as PearFlower does. If two machines use one
	// worker by mistake, few of their IDs are then equal. The higher the first segment, the
	// fewer numbers a tick has.
	SegmentRandom SegmentStart = "random"
)

// String returns the word. The zero value is SegmentZero.
func (s SegmentStart) String() string { return string(cmp.Or(s, SegmentZero)) }

// ParseSegmentStart parses the word for a SegmentStart.
func ParseSegmentStart(text string) (SegmentStart, error) {
	switch s := SegmentStart(text); s {
	case SegmentZero, SegmentRandom:
		return s, nil
	}
	return "", fmt.Errorf("the first segment must be zero or random, not %q", text)
}
