// Package order decides whether a history of requests is one of counters: no value was answered twice, and a request
// that was sent after another one had been answered got higher values. Porcupine decides about the order.
//
// Nothing here comes from flaked's own code. A history holds only what clients saw.
package order

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Request is one request for values that follow each other, and how it ended.
type Request struct {
	Name string // of the counter
	Node int    // the node that was asked
	// The client began to send the request at Sent, and had read the whole answer at Answered, ns by one monotonic
	// clock for all clients.
	Sent, Answered int64
	First, Last    int64 // values that were answered
	// Key is that of a request of a strict sequence which gets the same value each time, or "".
	Key string
	// Lost is the number of values that the request asked for, if its outcome is not known. 0: it was answered.
	Lost int64
}

func (r Request) String() string {
	values := fmt.Sprintf("%d to %d", r.First, r.Last)
	if r.Lost > 0 {
		values = fmt.Sprintf("%d values, perhaps", r.Lost)
	}
	if r.Key != "" {
		values += " for the key " + r.Key
	}
	return fmt.Sprintf("%s: %s, asked of node %d at %s, answered at %s", r.Name, values, r.Node,
		time.Duration(r.Sent), time.Duration(r.Answered))
}

// Violation is two requests of which one should not have got its values.
type Violation struct {
	Rule          string
	Before, After Request
}

// The rules.
const (
	NoValueTwice = "no value twice"
	InOrder      = "order"
)

func (v Violation) String() string { return fmt.Sprintf("%s: %s; then %s", v.Rule, v.Before, v.After) }

// answered returns a copy of the requests that were answered.
func answered(all []Request) []Request {
	return slices.DeleteFunc(slices.Clone(all), func(r Request) bool { return r.Lost > 0 })
}

// Twice returns the requests of one name that have a value in common, or whose values lie between those of another.
func Twice(all []Request) (found []Violation) {
	all = answered(all)
	slices.SortFunc(all, byValue)
	for i, highest := 0, (Request{}); i < len(all); i++ {
		r := all[i]
		if same := i > 0 && r.Name == highest.Name; same && r.First <= highest.Last {
			found = append(found, Violation{NoValueTwice, highest, r})
		} else if same && r.Last <= highest.Last {
			continue
		}
		if r.Name != highest.Name || r.Last > highest.Last {
			highest = r
		}
	}
	return found
}

func byValue(a, b Request) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.First, b.First))
}

// Missing returns how many values of a counter were not answered, of those that it gave between two times, and how many
// values the requests of unknown outcome asked for then.
func Missing(all []Request, name string, from, to int64) (missing, lost int64) {
	mine := slices.DeleteFunc(slices.Clone(all), func(r Request) bool { return r.Name != name })
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range mine {
		switch {
		case r.Lost > 0 && from <= r.Answered && r.Sent <= to:
			lost += r.Lost
		case r.Lost == 0 && from <= r.Sent && r.Answered <= to:
			low, high = min(low, r.First), max(high, r.Last)
		}
	}
	mine = answered(mine)
	slices.SortFunc(mine, byValue)
	for i := 1; i < len(mine); i++ {
		if low <= mine[i].First && mine[i].Last <= high {
			missing += max(0, mine[i].First-mine[i-1].Last-1)
		}
	}
	return missing, lost
}

// Silence returns the longest time in which no request of the counter was answered, between two times.
func Silence(all []Request, name string, from, to int64) time.Duration {
	at := []int64{from, to}
	for _, r := range answered(all) {
		if r.Name == name && from < r.Answered && r.Answered < to {
			at = append(at, r.Answered)
		}
	}
	slices.Sort(at)
	longest := int64(0)
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i]-at[i-1])
	}
	return time.Duration(longest)
}
