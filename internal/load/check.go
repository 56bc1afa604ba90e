package load

import (
	"fmt"
	"math"
	"sync"
)

// A page is a bit each for pageIDs neighbouring IDs.
const (
	pageBits  = 12
	pageIDs   = 1 << pageBits
	pageWords = pageIDs / 64
	// maxPages bounds the memory: 128 MiB, and the table of them. In the default
	// layout a worker fills at most a page a millisecond.
	maxPages = 1 << 18
	slabSize = 1 << 10 // pages
)

// CheckResult is what came of looking at IDs.
type CheckResult struct {
	IDs int64
	// Duplicates are IDs that had been received before, on any connection.
	Duplicates int64
	// Backwards are IDs not above the one before on their connection, which are
	// not among the duplicates.
	Backwards int64
	// Unchecked are IDs of which it is not known whether they were received
	// before: so much older than others that the memory for those is used up.
	Unchecked int64
	Examples  []string // the first few violations
}

// OK tells whether all was right.
func (r *CheckResult) OK() bool { return r.Duplicates == 0 && r.Backwards == 0 }

const maxExamples = 5

// stretch is IDs that follow on each other, received on one connection.
type stretch struct {
	first int64
	n     int32
	conn  int32
	// after is the connection's ID before this one; 0: none.
	after int64
}

// checker looks for IDs that come twice. It remembers each in a bit, and forgets
// the pages that it made first when there are too many.
type checker struct {
	mu     sync.Mutex // guards all below: the loops of several threads share it
	pages  map[int64]int32
	slabs  [][]uint64
	ring   []int64 // the keys of pages by number, made in this order
	max    int
	oldest int
	// forgotten is the highest key that was thrown out; nothing up to it is known
	// unless its page is there.
	forgotten int64
	cachedKey int64 // the page used last; IDs come in crowds
	cached    []uint64
	result    CheckResult
}

func newChecker(max int) *checker {
	return &checker{pages: map[int64]int32{}, max: max, forgotten: -1, cachedKey: -1}
}

// add takes what was received, in the order of each connection.
func (k *checker) add(stretches []stretch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range stretches {
		k.result.IDs += int64(s.n)
		duplicates := k.mark(s)
		if s.after > 0 && s.first <= s.after && duplicates == 0 {
			k.result.Backwards++
			k.example("%d after %d on connection %d", s.first, s.after, s.conn)
		}
	}
}

// mark sets the bits of a stretch, and counts those that were set.
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
					k.example("%d twice; the second time on connection %d", id+i, s.conn)
				}
				page[at] |= mask
			}
		}
		id, left = id+n, left-n
	}
	k.result.Duplicates += duplicates
	return duplicates
}

// page is where the IDs of a key are remembered, nil where that is over.
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
	last int64 // the ID received last; 0: none
}

// next takes a connection's next ID.
func (q *sequence) next(id int64, conn int32, out []stretch) []stretch {
	if n := len(out); n > 0 && id == q.last+1 && out[n-1].conn == conn && out[n-1].n < math.MaxInt32 && q.last != 0 {
		out[n-1].n++
	} else {
		out = append(out, stretch{first: id, n: 1, conn: conn, after: q.last})
	}
	q.last = id
	return out
}
