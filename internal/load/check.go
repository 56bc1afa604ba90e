package load

import (
	"fmt"
	"math"
	"sync"
)

// A page has a bit for each of pageIDs consecutive IDs.
const (
	pageBits  = 12
	pageIDs   = 1 << pageBits
	pageWords = pageIDs / 64
	// maxPages bounds the memory: 128 MiB, and the table of pages. In the default
	// layout a worker fills at most one page in a millisecond.
	maxPages = 1 << 18
	slabSize = 1 << 10 // pages
)

// CheckResult is the result of checking IDs.
type CheckResult struct {
	IDs int64 `json:"ids"`
	// Duplicates counts IDs that had been received before, on any connection.
	Duplicates int64 `json:"duplicates"`
	// Backwards counts IDs that are not above the previous ID of their connection.
	// Duplicates are not among them.
	Backwards int64 `json:"backwards"`
	// Unchecked counts IDs that may have been received before. They are so much lower
	// than others that the checker has forgotten their pages.
	Unchecked int64    `json:"unchecked"`
	Examples  []string `json:"examples"` // the first few violations
}

// OK reports whether no ID was a duplicate and none went backwards.
func (r *CheckResult) OK() bool { return r.Duplicates == 0 && r.Backwards == 0 }

const maxExamples = 5

// stretch is a row of consecutive IDs that one connection received.
type stretch struct {
	first int64
	n     int32
	conn  int32
	// after is the ID that the connection received before first, 0 for none.
	after int64
}

// checker finds IDs that are received twice. It keeps a bit for each ID. When it has
// max pages, it forgets the one that it made first.
type checker struct {
	mu     sync.Mutex // guards all below: the loops of several threads share it
	pages  map[int64]int32
	slabs  [][]uint64
	ring   []int64 // keys of the pages, by number
	max    int
	oldest int
	// forgotten is the highest key of a forgotten page. Of IDs with this key or a lower
	// one nothing is known, unless their page exists.
	forgotten int64
	cachedKey int64 // key of the page used last
	cached    []uint64
	result    CheckResult
}

func newChecker(max int) *checker {
	return &checker{pages: map[int64]int32{}, max: max, forgotten: -1, cachedKey: -1, result: CheckResult{Examples: []string{}}}
}

// add checks received IDs. The stretches of each connection must be in the order in
// which it received them.
func (k *checker) add(stretches []stretch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range stretches {
		k.result.IDs += int64(s.n)
		duplicates := k.mark(s)
		if s.after > 0 && s.first <= s.after && duplicates == 0 {
			k.result.Backwards++
			k.example("%d received after %d on connection %d", s.first, s.after, s.conn)
		}
	}
}

// mark sets the bits of a stretch, and returns how many of them were set already.
func (k *checker) mark(s stretch) (duplicates int64) {
	for id, left := s.first, int64(s.n); left > 0; {
		bit := id & (pageIDs - 1)
		n := min(left, pageIDs-bit)
		page := k.page(id >> pageBits)
		if page == nil {
			k.result.Unchecked += n
		} else {
			for i := range n {
				at, mask := (bit+i)/64, uint64(1)<<((bit+i)%64)
				if page[at]&mask != 0 {
					duplicates++
					k.example("%d received again on connection %d", id+i, s.conn)
				}
				page[at] |= mask
			}
		}
		id, left = id+n, left-n
	}
	k.result.Duplicates += duplicates
	return duplicates
}

// page returns the page of a key, or nil if it may be a forgotten one.
func (k *checker) page(key int64) []uint64 {
	if key == k.cachedKey {
		return k.cached
	}
	number, ok := k.pages[key]
	if !ok {
		if key <= k.forgotten {
			return nil
		}
		number = k.newPage(key)
	}
	k.cachedKey, k.cached = key, k.words(number)
	return k.cached
}

func (k *checker) newPage(key int64) int32 {
	if len(k.ring) < k.max {
		number := int32(len(k.ring))
		if len(k.ring)%slabSize == 0 {
			k.slabs = append(k.slabs, make([]uint64, slabSize*pageWords))
		}
		k.ring = append(k.ring, key)
		k.pages[key] = number
		return number
	}
	number := int32(k.oldest)
	k.oldest = (k.oldest + 1) % k.max
	delete(k.pages, k.ring[number])
	k.forgotten = max(k.forgotten, k.ring[number])
	k.ring[number], k.pages[key] = key, number
	clear(k.words(number))
	return number
}

func (k *checker) words(number int32) []uint64 {
	at := int(number) % slabSize * pageWords
	return k.slabs[int(number)/slabSize][at : at+pageWords]
}

func (k *checker) example(format string, args ...any) {
	if len(k.result.Examples) < maxExamples {
		k.result.Examples = append(k.result.Examples, fmt.Sprintf(format, args...))
	}
}

func (k *checker) violations() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.result.Duplicates + k.result.Backwards
}

// sequence joins a connection's IDs to stretches.
type sequence struct {
	last int64 // the last ID received, 0: none
}

// next adds a connection's next ID to out: to the last stretch, or as a new one.
func (q *sequence) next(id int64, conn int32, out []stretch) []stretch {
	if n := len(out); n > 0 && id == q.last+1 && out[n-1].conn == conn && out[n-1].n < math.MaxInt32 && q.last != 0 {
		out[n-1].n++
	} else {
		out = append(out, stretch{first: id, n: 1, conn: conn, after: q.last})
	}
	q.last = id
	return out
}
