package load

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// received passes IDs to a checker: pairs of a connection and an ID.
func received(k *checker, pairs ...int64) {
	sequences := map[int64]*sequence{}
	var out []stretch
	for i := 0; i < len(pairs); i += 2 {
		conn, id := pairs[i], pairs[i+1]
		if sequences[conn] == nil {
			sequences[conn] = &sequence{}
		}
		out = sequences[conn].next(id, int32(conn), out)
	}
	k.add(out)
}

func TestChecker(t *testing.T) {
	const far = 5 << pageBits
	for _, row := range []struct {
		name                              string
		pairs                             []int64
		duplicates, backwards, unseen, id int64
	}{
		{"nothing", nil, 0, 0, 0, 0},
		{"in order", []int64{1, 1, 1, 2, 1, 3, 1, 10}, 0, 0, 0, 4},
		{"two connections in turns", []int64{1, 1, 2, 2, 1, 3, 2, 4}, 0, 0, 0, 4},
		{"over a page's end", []int64{1, pageIDs - 2, 1, pageIDs - 1, 1, pageIDs, 1, pageIDs + 1}, 0, 0, 0, 4},
		{"twice in a row", []int64{1, 7, 1, 7}, 1, 0, 0, 2},
		{"twice, later", []int64{1, 7, 1, 8, 1, 9, 1, 8}, 1, 0, 0, 4},
		{"twice, on two connections", []int64{1, 7, 2, 7}, 1, 0, 0, 2},
		{"twice, within a stretch", []int64{1, 5, 2, 4, 2, 5, 2, 6}, 1, 0, 0, 4},
		{"twice, over a page's end", []int64{1, pageIDs, 2, pageIDs - 1, 2, pageIDs}, 1, 0, 0, 3},
		{"back", []int64{1, 7, 1, 3}, 0, 1, 0, 2},
		{"back, and on", []int64{1, 7, 1, 3, 1, 4, 1, 9}, 0, 1, 0, 4},
		{"another connection may be behind", []int64{1, far, 2, 3}, 0, 0, 0, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newChecker(maxPages)
			received(k, row.pairs...)
			r := k.result
			if r.Duplicates != row.duplicates || r.Backwards != row.backwards || r.Unchecked != row.unseen || r.IDs != row.id {
				t.Errorf("%+v", r)
			}
			if r.OK() != (row.duplicates+row.backwards == 0) || k.violations() != row.duplicates+row.backwards {
				t.Errorf("OK is %t, %d violations", r.OK(), k.violations())
			}
			if len(r.Examples) != int(row.duplicates+row.backwards) {
				t.Errorf("examples: %q", r.Examples)
			}
		})
	}
}

func TestCheckerNamesTheConnection(t *testing.T) {
	k := newChecker(maxPages)
	received(k, 1, 7, 2, 7)
	if got := strings.Join(k.result.Examples, "; "); got != "7 received again on connection 2" {
		t.Error(got)
	}
}

// The checker forgets pages that no longer fit, and counts their IDs as unchecked.
func TestForgottenPagesCountAsUnchecked(t *testing.T) {
	k := newChecker(2)
	page := func(n int64) int64 { return n << pageBits }
	received(k, 1, page(1), 1, page(2), 1, page(3), 2, page(2)+5, 3, page(1), 4, page(3))
	r := k.result
	if r.Unchecked != 1 || r.Duplicates != 1 || r.Backwards != 0 {
		t.Errorf("%+v", r)
	}
}

// The checker agrees with one that remembers everything.
func TestCheckerAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newChecker(maxPages)
		var pairs []int64
		seen, last := map[int64]bool{}, map[int64]int64{}
		var duplicates int64
		clean := true
		for range rapid.IntRange(0, 200).Draw(t, "n") {
			conn := rapid.Int64Range(0, 3).Draw(t, "conn")
			id := last[conn] + rapid.Int64Range(-1, 40).Draw(t, "step")
			if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
				id += pageIDs
			}
			id = max(id, 1)
			if seen[id] {
				duplicates++
			}
			clean = clean && !seen[id] && id > last[conn]
			seen[id], last[conn] = true, id
			pairs = append(pairs, conn, id)
		}
		received(k, pairs...)
		if k.result.Duplicates != duplicates || k.result.OK() != clean || k.result.IDs != int64(len(pairs)/2) {
			t.Fatalf("%+v; want %d duplicates, clean %t", k.result, duplicates, clean)
		}
	})
}

func BenchmarkChecker(b *testing.B) {
	k := newChecker(maxPages)
	id := int64(1) << 60
	for range b.N {
		k.add([]stretch{{first: id, n: 1}})
		id++
	}
}
