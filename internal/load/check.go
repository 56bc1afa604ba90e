package load

import "fmt"

// A page has a bit for each of pageIDs consecutive IDs.
const (
	pageBits = 12
	pageIDs  = 1 << pageBits
	// maxPages bounds the memory: 128 MiB, and the table of pages. In the default layout a
	// worker fills at most one page in a millisecond.
	maxPages = 1 << 18
)

type page [pageIDs / 64]uint64

// CheckResult is the result of checking IDs.
type CheckResult struct {
	IDs int64 `json:"ids"`
	// Duplicates counts IDs that had been received before, on any connection.
	Duplicates int64 `json:"duplicates"`
	// Backwards counts IDs that are not above the previous ID of their connection.
	// Duplicates are not among them.
	Backwards int64 `json:"backwards"`
	// Unchecked counts IDs that may have been received before. They are so much lower than
	// others that the checker has forgotten their pages.
	Unchecked int64    `json:"unchecked"`
	Examples  []string `json:"examples"` // the first few violations
}

// Violations returns the number of wrong IDs.
func (r *CheckResult) Violations() int64 { return r.Duplicates + r.Backwards }

const maxExamples = 5

// checker finds IDs that are received twice. It keeps a bit for each ID. When it has max pages,
// it forgets the one that it made first.
type checker struct {
	pages  map[int64]*page
	ring   []int64 // keys of the pages, in the order in which they were made
	max    int
	oldest int
	// forgotten is the highest key of a forgotten page. Of IDs with this key or a lower one
	// nothing is known, unless their page exists.
	forgotten int64
	cachedKey int64 // key of the page used last
	cached    *page
	result    CheckResult
}

func newChecker(max int) *checker {
	return &checker{pages: map[int64]*page{}, max: max, forgotten: -1, cachedKey: -1,
		result: CheckResult{Examples: []string{}}}
}

// add checks an ID that a connection received after the ID last, 0 for none.
func (k *checker) add(conn int, last, id int64) {
	k.result.IDs++
	p := k.page(id >> pageBits)
	at, mask := id%pageIDs/64, uint64(1)<<(id%64)
	switch {
	case p != nil && p[at]&mask != 0:
		k.result.Duplicates++
		k.example("%d received again on connection %d", id, conn)
		return
	case p == nil:
		k.result.Unchecked++
	default:
		p[at] |= mask
	}
	if last > 0 && id <= last {
		k.result.Backwards++
		k.example("%d received after %d on connection %d", id, last, conn)
	}
}

// page returns the page of a key, or nil if it may be a forgotten one.
func (k *checker) page(key int64) *page {
	if key == k.cachedKey {
		return k.cached
	}
	p := k.pages[key]
	if p == nil {
		if key <= k.forgotten {
			return nil
		}
		p = k.newPage(key)
	}
	k.cachedKey, k.cached = key, p
	return p
}

func (k *checker) newPage(key int64) *page {
	p := new(page)
	if len(k.ring) < k.max {
		k.ring = append(k.ring, key)
	} else {
		old := k.ring[k.oldest]
		p = k.pages[old]
		delete(k.pages, old)
		clear(p[:])
		k.forgotten = max(k.forgotten, old)
		k.ring[k.oldest] = key
		k.oldest = (k.oldest + 1) % k.max
	}
	k.pages[key] = p
	return p
}

func (k *checker) example(format string, args ...any) {
	if len(k.result.Examples) < maxExamples {
		k.result.Examples = append(k.result.Examples, fmt.Sprintf(format, args...))
	}
}
