package order

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// history draws requests of one counter, each of which counts at some moment after Sent, and before Answered unless it
// is lost. Some lost ones never count. Those of a strict counter may have keys.
func history(t *rapid.T, strict bool) (all []Request) {
	now, next, lost, values := int64(0), int64(10), 0, map[string]int64{}
	running, late := map[int]*Request{}, []*Request{}
	count := func(r *Request) {
		if v, ok := values[r.Key]; ok {
			r.First, r.Last = v, v
			return
		}
		if !strict {
			next += rapid.Int64Range(0, 2).Draw(t, "gap")
		}
		r.First, r.Last, next = next, next+r.Lost-1, next+r.Lost
		if r.Key != "" {
			values[r.Key] = r.First
		}
	}
	for range rapid.IntRange(1, 28).Draw(t, "steps") {
		now += 2 // porcupine decides about equal times by chance
		client := rapid.IntRange(0, 4).Draw(t, "client")
		r := running[client]
		switch end := rapid.IntRange(0, 9).Draw(t, "end"); {
		case r == nil:
			r = &Request{Name: "a", Node: client, Sent: now, Lost: rapid.Int64Range(1, 3).Draw(t, "values")}
			if r.Key = rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key"); !strict {
				r.Key = ""
			} else if r.Key != "" {
				r.Lost = 1
			}
			running[client] = r
			continue
		case r.Last == 0 && end > 6:
			count(r)
			continue
		case end > 1 || lost == 4: // porcupine alone takes long to decide about many
			if r.Last == 0 {
				count(r)
			}
			r.Lost = 0
		default:
			if lost++; r.Last == 0 {
				late = append(late, &Request{Key: r.Key, Lost: r.Lost})
			}
		}
		delete(running, client)
		r.Answered = now
		all = append(all, *r)
		if len(late) > 0 && rapid.Bool().Draw(t, "late") {
			count(late[0])
			late = late[1:]
		}
	}
	for client := range 5 {
		if r := running[client]; r != nil {
			r.Answered = now + 2
			all = append(all, *r)
		}
	}
	return all
}

// faults change a history. Most of the changed ones are no history of a counter any more.
var faults = map[string]func(t *rapid.T, all []Request, a, b *Request){
	"none":         func(*rapid.T, []Request, *Request, *Request) {},
	"values again": func(_ *rapid.T, _ []Request, a, b *Request) { a.First, a.Last = b.First, b.Last },
	"exchanged": func(_ *rapid.T, _ []Request, a, b *Request) {
		a.First, a.Last, b.First, b.Last = b.First, b.Last, a.First, a.Last
	},
	"longer": func(t *rapid.T, _ []Request, a, _ *Request) {
		if a.Key == "" {
			a.Last += rapid.Int64Range(1, 5).Draw(t, "more")
		}
	},
	"lower":          func(_ *rapid.T, _ []Request, a, _ *Request) { a.First, a.Last = a.First-3, a.Last-3 },
	"answered later": func(_ *rapid.T, _ []Request, a, b *Request) { a.Answered = max(a.Answered, b.Answered) },
	"a gap": func(_ *rapid.T, all []Request, a, _ *Request) {
		for i, from := 0, a.First; i < len(all); i++ {
			if all[i].First >= from {
				all[i].First, all[i].Last = all[i].First+1, all[i].Last+1
			}
		}
	},
	"a key forgotten": func(_ *rapid.T, all []Request, a, _ *Request) {
		if a.Key != "" {
			a.First = slices.MaxFunc(all, func(a, b Request) int { return int(a.Last - b.Last) }).Last + 1
			a.Last = a.First
		}
	},
}

// simple is a counter that says nothing about the order in which it served requests, and the values of two keys.
type simple struct {
	next int64
	keys [2]int64
}

// legal decides about short histories: porcupine tries all orders, and all outcomes of requests that are lost.
func legal(all []Request, strict bool) bool {
	lowest := int64(math.MaxInt64)
	for _, r := range answered(all) {
		lowest = min(lowest, r.First)
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{simple{next: lowest}} },
		Step: func(state, input, _ any) []any {
			s, r := state.(simple), input.(Request)
			k := slices.Index([]string{"k", "l"}, r.Key)
			served, value := s, r.First
			if served.next = r.Last + 1; r.Lost > 0 {
				served.next, value = s.next+r.Lost, s.next
			}
			if k >= 0 {
				served.keys[k] = value + 1 // 0: none
			}
			switch {
			case k >= 0 && s.keys[k] != 0 && (r.Lost > 0 || r.First+1 == s.keys[k]):
				return []any{s}
			case k >= 0 && s.keys[k] != 0:
				return nil
			case r.Lost > 0 && strict:
				return []any{s, served}
			case r.Lost > 0:
				return []any{s}
			case r.First == s.next, !strict && r.First > s.next:
				return []any{served}
			}
			return nil
		},
	}
	var operations []porcupine.Operation
	for _, r := range all {
		if r.Lost > 0 {
			r.Answered = math.MaxInt64
		}
		operations = append(operations, porcupine.Operation{Call: r.Sent, Return: r.Answered, Input: r})
	}
	return porcupine.CheckOperations(model.ToModel(), operations)
}

// The model takes hints from the history, and the history is cut at quiet moments. Porcupine decides the same without
// both. Each kind of fault must be found in some histories, and nothing in histories without faults.
func TestCheckDecidesAsPorcupineAlone(t *testing.T) {
	found, parts := map[string]int{}, 0
	for name, fault := range faults {
		property := func(t *rapid.T) {
			strict := rapid.Bool().Draw(t, "strict")
			all := history(t, strict)
			if len(all) > 1 {
				two := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 2, 2, rapid.ID).Draw(t, "two")
				fault(t, all, &all[two[0]], &all[two[1]])
				all[two[0]].Answered++
			}
			want, checked, spare := legal(all, strict), all, int64(0)
			if !strict {
				checked, spare = answered(all), math.MaxInt64/2
			}
			for _, size := range []int{1, 3, 100} {
				got := check(checked, spare, nil, size)
				// Porcupine alone knows that a request gets all its values or none, and a key one value.
				more := strict && slices.ContainsFunc(all, func(r Request) bool {
					return r.Lost > 1 || r.Lost > 0 && r.Key != ""
				})
				if want && len(got) > 0 || !more && !want && len(got) == 0 {
					t.Fatalf("strict %v; porcupine alone: %v; parts of %d: %v; of\n%v", strict, want, size, got, all)
				}
				if len(got) > 0 && size == 1 {
					found[fmt.Sprint(name, " ", strict)]++
				}
			}
			parts += len(cut(take(all, nil), 1))
		}
		for range 8 { // else a fault may be found in no history
			rapid.Check(t, property)
		}
		for _, strict := range []bool{false, true} {
			count := found[fmt.Sprint(name, " ", strict)]
			clean := name == "none" || name == "answered later" ||
				!strict && (name == "a gap" || name == "a key forgotten")
			if (count == 0) != clean {
				t.Errorf("%s, strict %v: %d histories have a violation", name, strict, count)
			}
		}
	}
	t.Logf("histories with a violation: %v; %d parts", found, parts)
}

func of(node int, first, last, sent, answered int64) Request {
	return Request{Name: "a", Node: node, First: first, Last: last, Sent: sent, Answered: answered}
}

// A long history is cut where nothing is under way, and each part is long enough.
func TestCutsAreAtQuietMoments(t *testing.T) {
	var all []Request
	for i := range int64(10_000) { // two at a time; after 20 there is a quiet moment
		all = append(all, of(0, i+1, i+1, 10*i+i/20*100, 10*i+i/20*100+15))
	}
	parts := cut(take(all, nil), partSize)
	if len(parts) != 20 {
		t.Errorf("%d parts", len(parts))
	}
	if wrong := Strict(all, nil); len(wrong) > 0 {
		t.Error(wrong)
	}
	all[9000].Sent, all[9000].Answered = all[9002].Answered+1, all[9002].Answered+2
	if wrong := Strict(all, nil); len(wrong) != 1 || wrong[0].After.First != 9001 || wrong[0].Before.First != 9002 {
		t.Error(wrong)
	}
}

func TestMissingAndSilence(t *testing.T) {
	good := []Request{of(0, 1, 10, 1, 2), of(1, 21, 30, 3, 9), of(2, 31, 31, 4, 5)}
	other, lost := of(0, 1, 10, 1, 2), of(0, 0, 0, 6, 7)
	other.Name, lost.Lost = "b", 3
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
