package load

import (
	"testing"
)

func TestChecker(t *testing.T) {
	const far = 5 << pageBits
	for _, row := range []struct {
		name                             string
		pairs                            []int64 // of a connection and an ID
		duplicates, backwards, unchecked int64
	}{
		{"nothing", nil, 0, 0, 0},
		{"in order, over a page's end", []int64{1, 1, 1, pageIDs - 1, 1, pageIDs, 1, pageIDs + 1}, 0, 0, 0},
		{"twice in a row", []int64{1, 7, 1, 7}, 1, 0, 0},
		{"twice, later", []int64{1, 7, 1, 8, 1, 9, 1, 8}, 1, 0, 0},
		{"twice, on two connections", []int64{1, 7, 2, 7}, 1, 0, 0},
		{"back, and on", []int64{1, 7, 1, 3, 1, 4, 1, 9}, 0, 1, 0},
		{"another connection may be behind", []int64{1, far, 2, 3}, 0, 0, 0},
		{"of forgotten pages nothing is known",
			[]int64{1, 1 * pageIDs, 1, 2 * pageIDs, 1, 3 * pageIDs, 1, 4 * pageIDs, 3, 1 * pageIDs, 4, 4 * pageIDs}, 1,
			0, 1},
	} {
		k := newChecker(3)
		last := map[int64]int64{}
		for i := 0; i < len(row.pairs); i += 2 {
			conn, id := row.pairs[i], row.pairs[i+1]
			k.add(int(conn), last[conn], id)
			last[conn] = id
		}
		r := k.result
		if r.Duplicates != row.duplicates || r.Backwards != row.backwards || r.Unchecked != row.unchecked ||
			r.IDs != int64(len(row.pairs)/2) || int64(len(r.Examples)) != r.Violations() {
			t.Errorf("%s: %+v", row.name, r)
		}
	}
}
