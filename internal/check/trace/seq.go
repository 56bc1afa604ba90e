package trace

import (
	"math/bits"
	"strconv"
	"strings"
)

// block is positions that a node holds or has issued. given: it has given them back, or tried to.
type block struct {
	first, end, inc int64
	node            *node
	line            *Line
	given           bool
}

// ownership is the last lease of a section.
type ownership struct {
	nonce string
	until int64
	line  *Line
}

// takes reports whether a write takes a block, gives whether it gives positions back.
func takes(x *at) bool { return x.int("end") > x.int("first") }
func gives(x *at) bool { return x.int("next") < x.int("was_next") }

// within and afterLoss report whether a write takes the first block in an incarnation.
func within(x *at) bool    { return takes(x) && x.int("was_inc") == x.int("inc") }
func afterLoss(x *at) bool { return takes(x) && x.int("was_inc") < x.int("inc") }

func count(x *at) int64 { return x.int("end") - x.int("first") }
func skip(x *at) int64  { return x.int("first") - x.int("was_next") }

// earned returns the positions that a ceiling gives in ms milliseconds.
func earned(ceiling, ms int64) int64 {
	hi, lo := bits.Mul64(uint64(max(0, ceiling)), uint64(max(0, ms)))
	if hi >= 1000 {
		return 1 << 62
	}
	n, _ := bits.Div64(hi, lo, 1000)
	return int64(min(n, 1<<62))
}

var writeRules = []rule{
	{"S1", "no block lies beyond the last position", func(x *at) bool { return x.int("end") <= x.int("positions") },
		takes},
	{"S2", "a block begins at or above the next position of the record, and raises that", func(x *at) bool {
		return skip(x) >= 0 && x.int("next") == x.int("end")
	}, takes},
	{"S4", "a node gives back only what it holds, and nobody has taken a block since", func(x *at) bool {
		return x.covered(x.int("next"), x.int("was_next"))
	}, gives},
	{"S6", "no more is taken than the ceiling allows", func(x *at) bool {
		credit := min(x.int("was_credit")+earned(x.int("ceiling"), x.int("at")-x.int("was_at")),
			max(x.int("was_credit"), earned(x.int("ceiling"), 10_000)))
		return count(x) <= credit && x.int("credit") <= credit-count(x)
	}, within},
	{"S9", "nobody takes positions for the confirming time after the incarnation has grown", func(x *at) bool {
		x.before = x.entered
		at := x.entered.int("at") // 0: nobody has lost data
		return x.entered.int("inc") == x.int("inc") && (at == 0 || x.boot-at >= int64(x.w.cluster.Confirm))
	}, func(x *at) bool { return x.entered != nil && (takes(x) || gives(x)) }},
	{"S10", "the slot is checked as a heartbeat of this process has left it",
		func(x *at) bool { return x.versions[x.int("slot")] }, nil},
	{"S11", "a node takes positions only when its heartbeats have had no gap for long enough", func(x *at) bool {
		return x.int("wait_ms") == 0
	}, func(x *at) bool { return takes(x) || gives(x) }},
	{"S13", "the first block of an incarnation skips what may have been taken since the record was written",
		func(x *at) bool {
			return skip(x) >= x.int("was_credit")+earned(x.int("hard"), x.int("at")-x.int("was_at"))
		}, afterLoss},
	{"S13", "over an incarnation that was lost, it skips to the peak", func(x *at) bool {
		return x.int("first") >= x.int("peak_from")+earned(x.int("hard"), x.int("at")-x.int("peak_at"))
	}, func(x *at) bool { return afterLoss(x) && x.int("was_inc") < x.int("inc")-1 }},
	{"S14", "the first block has an eighth of the burst at most, and must be paid for", func(x *at) bool {
		return count(x) <= max(1, earned(x.int("ceiling"), 10_000)/8) && x.int("credit") <= -count(x)
	}, afterLoss},
	{"S15", "a skip of more than a tenth of what is left freezes the sequence", func(x *at) bool {
		return skip(x) <= (x.int("positions")-x.int("was_next"))/10
	}, afterLoss},
	{"O4", "the section has no owner, or its record was seen unchanged for the lease", func(x *at) bool {
		before := x.word("was_owner")
		left := (before == "" || before == x.word("ended")) && x.int("was_inc") == x.int("inc")
		return left || x.boot-x.int("since") >= x.int("hold_ms")*1_000_000
	}, func(x *at) bool { return x.word("owner") != "" && x.word("owner") != x.word("was_owner") }},
}

// write notes a write that is sent. What it gives back is not the node's any more, nor is a section that it leaves.
func (x *at) write() {
	x.writes[x.word("id")+x.word("nonce")] = x.Line
	if x.word("owner") != x.word("was_owner") {
		x.disown(x.word("was_owner"))
	}
	if !gives(x) {
		return
	}
	from := x.int("next")
	x.cut(from)
	for _, b := range x.w.blocks[x.word("id")] {
		if b.node == x.node() && !b.given && b.first >= from {
			b.given, b.line = true, x.Line
		}
	}
}

// cut makes two of each block of the node that has positions on both sides of p.
func (x *at) cut(p int64) {
	id := x.word("id")
	for _, b := range x.w.blocks[id] {
		if b.node == x.node() && b.first < p && p < b.end {
			rest := *b
			rest.first, b.end = p, p
			x.w.blocks[id] = append(x.w.blocks[id], &rest)
		}
	}
}

func (x *at) block() {
	x.w.blocks[x.word("id")] = append(x.w.blocks[x.word("id")],
		&block{x.int("first"), x.int("end"), x.int("inc"), x.node(), x.Line, false})
}

// unheld reports whether no other node than self holds a position from first to end.
func (x *at) unheld(first, end int64, self *node) bool {
	for _, b := range x.w.blocks[x.word("id")] {
		if max(first, b.first) < min(end, b.end) && !b.given && (self == nil || b.node != self) {
			x.before = b.line
			return false
		}
	}
	return true
}

// covered reports whether the node has taken all positions from first to end, and no other node has taken them since.
func (x *at) covered(first, end int64) bool {
	if !x.unheld(first, end, x.node()) {
		return false
	}
	for found := true; found && first < end; {
		found = false
		for _, b := range x.w.blocks[x.word("id")] {
			if b.node == x.node() && b.first <= first && first < b.end {
				first, found = b.end, true
			}
		}
	}
	return first >= end
}

func aboveEarlier(x *at) bool {
	for _, b := range x.w.blocks[x.word("id")] {
		if b.inc < x.int("inc") && !b.given && b.end > x.int("first") {
			x.before = b.line
			return false
		}
	}
	return true
}

// ranges calls f with each block of a journal, until f returns false.
func (x *at) ranges(f func(first, end int64) bool) bool {
	for word := range strings.SplitSeq(x.word("blocks"), ",") {
		from, to, _ := strings.Cut(word, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		end, wrong := strconv.ParseInt(to, 10, 64)
		if err != nil || wrong != nil {
			x.lacks = "blocks"
		} else if !f(first, end) {
			return false
		}
	}
	return true
}

func aboveBound(x *at) bool {
	bound := x.node().bounds[x.word("id")]
	if bound == nil {
		return true
	}
	x.before = bound
	return x.ranges(func(first, _ int64) bool { return first >= bound.int("bound") })
}

func heldBefore(x *at) bool { return x.ranges(x.covered) }

// resume holds again what a journal has, also what could not be given back, and nothing else of the same block.
func (x *at) resume() {
	x.ranges(func(first, end int64) bool {
		x.cut(first)
		x.cut(end)
		for _, b := range x.w.blocks[x.word("id")] {
			if b.node == x.node() && first <= b.first && b.end <= end {
				b.given = false
			}
		}
		return true
	})
}

func (x *at) owner() *ownership { return x.w.owners[x.word("name")] }

func (x *at) own() {
	x.w.owners[x.word("name")] = &ownership{x.word("owner"), x.int("until"), x.Line}
}

// disown ends the lease of an owner.
func (x *at) disown(nonce string) {
	if o := x.owner(); o != nil && o.nonce == nonce && x.boot < o.until {
		o.until, o.line = x.boot, x.Line
	}
}
