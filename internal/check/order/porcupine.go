package order

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// rising is a counter with gaps. Its state is the highest value that it has given.
var rising = porcupine.Model{
	Init: func() any { return int64(math.MinInt64) },
	Step: func(state, _, output any) (bool, any) {
		r := output.(Request)
		return r.First > state.(int64), r.Last
	},
}

// Linearizable reports whether a short history is one of counters that rise, as porcupine decides: it looks for an
// order of the requests that such a counter could have served. It fails if that takes longer than ten seconds.
func Linearizable(all []Request) (bool, error) {
	names := map[string][]porcupine.Operation{}
	for _, r := range answered(all) {
		names[r.Name] = append(names[r.Name], porcupine.Operation{Call: r.Sent, Return: r.Answered, Output: r})
	}
	for name, operations := range names {
		switch porcupine.CheckOperationsTimeout(rising, operations, 10*time.Second) {
		case porcupine.Illegal:
			return false, nil
		case porcupine.Unknown:
			return false, fmt.Errorf("porcupine could not decide %d requests of %s in time", len(operations), name)
		}
	}
	return true, nil
}

// Windows splits a history into windows of so many requests in the order in which they were sent. Half of each window
// is in the next one, too. A part of a history of a rising counter is one itself.
func Windows(all []Request, size int) (windows [][]Request) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.Sent, b.Sent) })
	for from := 0; from < len(all); from += size / 2 {
		windows = append(windows, all[from:min(from+size, len(all))])
	}
	return windows
}
