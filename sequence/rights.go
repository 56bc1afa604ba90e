package sequence

import (
	"fmt"
	"slices"
	"strings"
)

// Rights says which sequences a client may use. nil means all of them. Make it with ParseRights.
// It does not change and is safe for concurrent use.
type Rights struct {
	names, prefixes []string // both sorted
}

// ParseRights returns the rights that a list gives: names of sequences and patterns like order:*,
// separated by commas, or none. A pattern is the beginning of names, and * stands for the rest.
func ParseRights(list string) (*Rights, error) {
	if list == "none" {
		return &Rights{}, nil
	}
	r, all := &Rights{}, false
	for entry := range strings.SplitSeq(list, ",") {
		prefix, isPattern := strings.CutSuffix(entry, "*")
		switch {
		case entry == "":
			return nil, fmt.Errorf("an entry is empty. Write next=NAME,PATTERN*,... or next=none")
		case entry == "none":
			return nil, fmt.Errorf("none must stand alone")
		case entry == "*":
			all = true
			continue
		}
		check := CheckName[string]
		if isPattern {
			check = CheckPrefix
		}
		if err := check(prefix); err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		if isPattern {
			r.prefixes = append(r.prefixes, prefix)
		} else {
			r.names = append(r.names, entry)
		}
	}
	if all {
		return nil, nil
	}
	r.names, r.prefixes = sorted(r.names), sorted(r.prefixes)
	return r, nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// MayUse reports whether the rights include a sequence. It allocates nothing.
func (r *Rights) MayUse(name []byte) bool { return r == nil || r.includes(name) }

func (r *Rights) includes(name []byte) bool {
	for _, n := range r.names {
		if string(name) == n {
			return true
		}
	}
	for _, p := range r.prefixes {
		if len(name) >= len(p) && string(name[:len(p)]) == p {
			return true
		}
	}
	return false
}

// Equal reports whether two rights name the same sequences in the same patterns.
func (r *Rights) Equal(o *Rights) bool {
	if r == nil || o == nil {
		return r == o
	}
	return slices.Equal(r.names, o.names) && slices.Equal(r.prefixes, o.prefixes)
}
