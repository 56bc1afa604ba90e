package order

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// history draws requests of counters that rise, each of which counts at some moment between Sent and Answered.
func history(t *rapid.T) (all []Request) {
	now, counters := int64(0), map[string]int64{}
	running := map[int]Request{} // by client
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		now++
		client := rapid.IntRange(0, 4).Draw(t, "client")
		r, asked := running[client]
		if !asked {
			running[client] = Request{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), Node: client,
				Sent: now}
			continue
		}
		n := rapid.Int64Range(1, 3).Draw(t, "values")
		if r.Last == 0 { // it has not been counted
			r.First = counters[r.Name] + rapid.Int64Range(1, 3).Draw(t, "gap")
			r.Last = r.First + n - 1
			counters[r.Name] = r.Last
			if running[client] = r; rapid.Bool().Draw(t, "answered later") {
				continue
			}
		}
		delete(running, client)
		r.Answered = now
		if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
			r.Lost = n
		}
		all = append(all, r)
	}
	return all
}

// faults change a history. Most of the changed ones are no history of rising counters any more.
var faults = map[string]func(t *rapid.T, a, b *Request){
	"none":         func(*rapid.T, *Request, *Request) {},
	"values again": func(_ *rapid.T, a, b *Request) { a.First, a.Last = b.First, b.Last },
	"exchanged": func(_ *rapid.T, a, b *Request) {
		a.First, a.Last, b.First, b.Last = b.First, b.Last, a.First, a.Last
	},
	"longer":         func(t *rapid.T, a, _ *Request) { a.Last += rapid.Int64Range(1, 5).Draw(t, "longer") },
	"lower":          func(t *rapid.T, a, _ *Request) { a.First, a.Last = a.First-3, a.Last-3 },
	"answered later": func(_ *rapid.T, a, b *Request) { a.Answered = max(a.Answered, b.Answered) },
}

// Both checkers decide alike, with and without a fault, and so do they on windows. Each kind of fault must be found in
// some histories, and nothing in those without.
func TestCheckersAgree(t *testing.T) {
	found, windows := map[string]int{}, 0
	for name, fault := range faults {
		rapid.Check(t, func(t *rapid.T) {
			all := history(t)
			for i := range all { // porcupine decides about equal times by chance
				all[i].Sent, all[i].Answered = 2*all[i].Sent, 2*all[i].Answered
			}
			if len(all) > 1 {
				two := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 2, 2, rapid.ID).Draw(t, "two")
				fault(t, &all[two[0]], &all[two[1]])
				all[two[0]].Answered++
			}
			legal := true
			for _, of := range Windows(all, 2*len(all)) { // of each name
				if ok, decided := Linearizable(of, time.Minute); !decided {
					t.Fatalf("not decided: %v", of)
				} else if !ok {
					legal = false
				}
			}
			if wrong := Check(all); legal != (len(wrong) == 0) {
				t.Fatalf("porcupine: %v; the intervals: %v; of\n%v", legal, wrong, all)
			}
			for _, w := range Windows(all, 6) {
				if ok, _ := Linearizable(w, time.Minute); ok != (len(Check(w)) == 0) || legal && !ok {
					t.Fatalf("a window: %v, all: %v; of\n%v", ok, legal, w)
				}
				windows++
			}
			if !legal {
				found[name]++
			}
		})
	}
	t.Logf("histories with a violation: %v; %d windows", found, windows)
	for name := range faults {
		if clean := name == "none" || name == "answered later"; (found[name] == 0) != clean {
			t.Errorf("%s: %d histories have a violation", name, found[name])
		}
	}
}

func of(node int, first, last, sent, answered int64) Request {
	return Request{Name: "a", Node: node, First: first, Last: last, Sent: sent, Answered: answered}
}

// Each row is added to requests that violate nothing.
func TestCheckNamesTheRule(t *testing.T) {
	good := []Request{of(0, 1, 10, 1, 2), of(1, 21, 30, 3, 9), of(2, 31, 31, 4, 5)}
	other, lost := of(0, 1, 10, 1, 2), of(0, 0, 0, 6, 7)
	other.Name, lost.Lost = "b", 3
	for name, row := range map[string]struct {
		add  Request
		want string
	}{
		"of another name":               {other, "[]"},
		"without an answer":             {lost, "[]"},
		"lower, at once with others":    {of(0, 11, 20, 3, 10), "[]"},
		"the same value":                {of(0, 30, 30, 3, 10), "[no value twice]"},
		"within the values of another":  {of(0, 22, 23, 3, 10), "[no value twice]"},
		"lower, later, of another node": {of(0, 11, 12, 6, 10), "[order]"},
		"twice and lower":               {of(0, 31, 31, 6, 10), "[no value twice order]"},
	} {
		got := []string{}
		for _, v := range Check(append([]Request{row.add}, good...)) {
			got = append(got, v.Rule)
		}
		if fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v, want %s", name, got, row.want)
		}
	}
	for times, want := range map[[2]int64][2]int64{{0, 9}: {10, 3}, {0, 3}: {0, 0}, {6, 9}: {0, 3}, {8, 9}: {0, 0}} {
		missing, asked := Missing(append(good, other, lost), "a", times[0], times[1])
		if got := [2]int64{missing, asked}; got != want {
			t.Errorf("%v: %v, want %v", times, got, want)
		}
	}
	if d := Silence(good, "a", 0, 20); d != 11*time.Nanosecond {
		t.Error(d)
	}
}
