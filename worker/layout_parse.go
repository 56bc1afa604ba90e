package worker

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// presets are the layouts that have a name.
func presets() map[string]Layout {
	return map[string]Layout{"leaf": Leaf(), "twitter": Twitter()}
}

// ParseLayout reads a layout as users write it: a preset's name ("leaf",
// "twitter"), or fields
//
//	time=41@1ms,datacenter=5,worker=5,sequence=12,epoch=1288834974657
//
// where the epoch is in Unix milliseconds or an RFC 3339 date. Fields left out
// are those of the default layout, but for datacenter, which is 0.
func ParseLayout(s string) (Layout, error) {
	s = strings.TrimSpace(s)
	if l, ok := presets()[strings.ToLower(s)]; ok {
		return l, nil
	}
	if !strings.Contains(s, "=") {
		return Layout{}, fmt.Errorf("%w: %q is not a preset (leaf, twitter) nor fields such as time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=%d", ErrLayout, s, twitterEpoch)
	}
	l, seen := Leaf(), map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if seen[name] {
			return Layout{}, fmt.Errorf("%w: %s is given twice", ErrLayout, name)
		}
		seen[name] = true
		if err := l.setField(name, value); err != nil {
			return Layout{}, fmt.Errorf("%w: %s=%s: %v", ErrLayout, name, value, err)
		}
	}
	return l, l.Validate()
}

func (l *Layout) setField(name, value string) (err error) {
	switch name {
	case "time":
		bits, unit, timed := strings.Cut(value, "@")
		if timed {
			if l.Unit, err = time.ParseDuration(unit); err != nil {
				return fmt.Errorf("a tick is written as 1ms, 10ms, 1s")
			}
		}
		l.TimeBits, err = parseBits(bits)
	case "datacenter":
		l.DatacenterBits, err = parseBits(value)
	case "worker":
		l.WorkerBits, err = parseBits(value)
	case "sequence":
		l.SequenceBits, err = parseBits(value)
	case "epoch":
		l.Epoch, err = parseEpoch(value)
	default:
		err = fmt.Errorf("unknown field; the fields are time, datacenter, worker, sequence, epoch")
	}
	return err
}

func parseBits(s string) (uint8, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n > usableBits {
		return 0, fmt.Errorf("a number of bits from 0 to %d is wanted", usableBits)
	}
	return uint8(n), nil
}

func parseEpoch(s string) (int64, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ms, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("an epoch is Unix milliseconds (%d) or a date (2020-01-01T00:00:00Z)", twitterEpoch)
	}
	return t.UnixMilli(), nil
}

// String is the layout as ParseLayout reads it, always in full, so that two
// layouts are equal when their strings are.
func (l Layout) String() string {
	return fmt.Sprintf("time=%d@%s,datacenter=%d,worker=%d,sequence=%d,epoch=%d",
		l.TimeBits, l.Unit, l.DatacenterBits, l.WorkerBits, l.SequenceBits, l.Epoch)
}
