package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/view"
)

// ownership says who owns an ordered sequence, or a section of a family.
type ownership struct {
	// Owner is where other nodes reach the owner, or its name if they cannot. It is missing if there is no owner.
	Owner string `json:"owner,omitempty"`
	// OwnedSinceMs is the time at which the owner took the section, Unix ms by its clock.
	OwnedSinceMs int64 `json:"owned_since_ms,omitempty"`
	// OwnerGone: the owner has not renewed its lease, so another node may take its place.
	OwnerGone bool `json:"owner_gone,omitempty"`
	// Term counts the ownerships. That of a family is the sum of its sections.
	Term int64 `json:"term,omitempty"`
}

// sectionReport is a section of a family.
type sectionReport struct {
	Section int    `json:"section"`
	State   string `json:"state"`
	Next    int64  `json:"next_position,string"`
	ownership
}

func owned(n record.Named, now int64) ownership {
	o := ownership{Term: n.Term}
	if n.HasOwner() {
		o.Owner, o.OwnedSinceMs, o.OwnerGone = cmp.Or(n.Address, n.By, "unknown"), n.OwnedAt, view.OwnerGone(n, now)
	}
	return o
}

// describeOwners adds what only ordered sequences have.
func (d *seqReport) describeOwners(n record.Named, st record.State, now int64) {
	d.LeaseMs, d.ownership = d.HoldMs, owned(n, now)
	for _, s := range n.Sections {
		_, k, _ := record.SectionOf(s.Name)
		d.Skips = max(d.Skips, s.Standing(st).Skip)
		d.Sections = append(d.Sections, sectionReport{k, view.SequenceState(s.Record, st), s.Next, owned(s, now)})
	}
}

// ownerRows returns who owns an ordered sequence. The owners of a family have a table of their own.
func (d seqReport) ownerRows(now time.Time) (rows textTable) {
	family, k, section := record.SectionOf(d.Name)
	switch {
	case d.LeaseMs == 0, d.DeletedMs != nil:
		return nil
	case d.Sections != nil:
		rows.add("sections", strconv.Itoa(len(d.Sections)))
	case d.Owner == "":
		rows.add("owner", "none: the next request makes a node the owner")
	default:
		owner := view.Clean(d.Owner) + ", since " + view.Instant(d.OwnedSinceMs, now)
		if d.OwnerGone {
			owner += ". It has not renewed its lease: the next request makes another node take over"
		}
		rows.add("owner", owner)
	}
	if section {
		rows.add("family", fmt.Sprintf("%s, section %d", family, k))
	}
	rows.add("owners so far", view.Thousands(strconv.FormatInt(d.Term, 10)))
	return rows
}

// printOwners prints the sections of a family by their owners.
func (d seqReport) printOwners(w io.Writer, now time.Time) error {
	if len(d.Sections) == 0 {
		return nil
	}
	byOwner := map[string][]sectionReport{}
	for _, s := range d.Sections {
		owner := cmp.Or(view.Clean(s.Owner), "none")
		if s.OwnerGone {
			owner += " (has not renewed its lease)"
		}
		byOwner[owner] = append(byOwner[owner], s)
	}
	var t textTable
	t.add("OWNER", "COUNT", "OWNED FOR", "OWNERS SO FAR", "SECTIONS")
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		some := byOwner[owner]
		since, term := int64(0), int64(0)
		var numbers []int
		for _, s := range some {
			since, term = max(since, s.OwnedSinceMs), term+s.Term
			numbers = append(numbers, s.Section)
		}
		age := "-"
		if since != 0 {
			age = view.Brief(max(0, now.UnixMilli()-since)) + " or more"
		}
		t.add(owner, strconv.Itoa(len(some)), age, strconv.FormatInt(term, 10), ranges(numbers))
	}
	fmt.Fprintln(w)
	return t.print(w)
}

// mostRanges is the most ranges of sections in a line.
const mostRanges = 8

// ranges returns ascending numbers as in 0-3 7, the first of them if there are many.
func ranges(numbers []int) string {
	parts := spans(numbers)
	if len(parts) > mostRanges {
		parts = append(parts[:mostRanges], "...")
	}
	return strings.Join(parts, " ")
}

// spans returns ascending numbers as in [0-3 7].
func spans(numbers []int) (parts []string) {
	for k := 0; k < len(numbers); {
		end := k + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		part := strconv.Itoa(numbers[k])
		if end > k+1 {
			part += "-" + strconv.Itoa(numbers[end-1])
		}
		parts, k = append(parts, part), end
	}
	return parts
}
