package order

import (
	"cmp"
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

// Linearizable reports whether requests of one name are a history of a counter that rises, as porcupine decides: it
// looks for an order of the requests that such a counter could have served. It may take time that is exponential in the
// number of requests at once, so it gives up after patience.
func Linearizable(window []Request, patience time.Duration) (legal, decided bool) {
	var operations []porcupine.Operation
	for _, r := range answered(window) {
		operations = append(operations, porcupine.Operation{Call: r.Sent, Return: r.Answered, Output: r})
	}
	result := porcupine.CheckOperationsTimeout(rising, operations, patience)
	return result == porcupine.Ok, result != porcupine.Unknown
}

// Windows splits a history by names, and into windows of so many requests in the order in which they were sent. Half of
// each window is in the next one, too. A part of a history of a rising counter is one itself.
func Windows(all []Request, size int) (windows [][]Request) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Sent, b.Sent))
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Name == all[0].Name {
			n++
		}
		for from := 0; from < n; from += size / 2 {
			windows = append(windows, all[from:min(from+size, n)])
		}
		all = all[n:]
	}
	return windows
}
