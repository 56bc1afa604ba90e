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

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// ownerRows returns who owns an ordered sequence. The owners of a family have a table of their own.
func ownerRows(d health.SequenceReport, now time.Time) (rows textTable) {
	switch {
	case d.LeaseMs == 0, d.DeletedMs != nil:
		return nil
	case d.KnownSections > 0:
		rows.add("sections", strconv.Itoa(d.KnownSections))
	case d.Owner == "":
		rows.add("owner", "none: the next request makes a node the owner")
	default:
		owner := words.Clean(d.Owner) + ", since " + words.Moment(d.OwnedSinceMs, now)
		if d.OwnerGone {
			owner += ". It has not renewed its lease: the next request makes another node take over"
		}
		rows.add("owner", owner)
	}
	if d.Section != nil {
		rows.add("family", fmt.Sprintf("%s, section %d", d.Family, *d.Section))
	}
	rows.add("owners so far", words.Grouped(d.Term))
	return rows
}

// printOwners prints the sections of a family by their owners.
func printOwners(d health.SequenceReport, w io.Writer, now time.Time) error {
	if len(d.BySection) == 0 {
		return nil
	}
	byOwner := map[string][]health.SectionReport{}
	for _, s := range d.BySection {
		owner := cmp.Or(words.Clean(s.Owner), "none")
		if s.OwnerGone {
			owner += " (has not renewed its lease)"
		}
		byOwner[owner] = append(byOwner[owner], s)
	}
	var t textTable
	t.add("OWNER", "COUNT", "OWNED FOR", "OWNERS SO FAR", "SECTIONS")
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		some := byOwner[owner]
		since, term := int64(0), int64(0) // since: the time at which it got its last section, Unix ms
		var numbers []int
		for _, s := range some {
			since, term = max(since, s.OwnedSinceMs), term+s.Term
			numbers = append(numbers, s.Section)
		}
		age := "-"
		if since != 0 {
			age = words.Duration(max(0, now.UnixMilli()-since)) + " or more"
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
	parts := words.Ranges(numbers)
	if len(parts) > mostRanges {
		parts = append(parts[:mostRanges], "...")
	}
	return strings.Join(parts, " ")
}
