package record

import (
	"strconv"
	"strings"
)

// internal/core/positions/family.go says what a family and its sections are. An operator changes a family and all its
// sections in one transaction, so that nobody sees a part of a change. The sections of the earlier lives of a family
// stay as tombstones until it is purged, also where a later life has fewer.

// SectionName returns the name of a section of a family. No client can ask for it: names have no *.
func SectionName(family string, k int) string { return family + strconv.Itoa(k) }

// SectionOf returns the family to which a section's record belongs, and the number of the section. ok is false if the
// name is not that of a section.
func SectionOf(name string) (family string, section int, ok bool) {
	at := strings.IndexByte(name, '*') + 1
	section, err := strconv.Atoi(name[at:])
	return name[:at], section, at > 0 && err == nil
}
