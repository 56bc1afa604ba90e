package positions

// A family is an ordered sequence for each name that begins with a prefix, such as msg:*. It has sections, which have
// owners, and each section has lanes, which are counters. Names that share a lane share its counter. The names have no
// records. Each section has a record, and is a series on the nodes.

// Lanes is the number of lanes in a section of a family.
const Lanes = 4096

// MaxSections is the greatest number of sections of a family.
const MaxSections = 512

// SectionAndLane returns the section and the lane of a name, in a family of this many sections: from the 64-bit FNV-1a
// hash h of the name, h mod sections, and the upper 32 bits of h mod Lanes.
func SectionAndLane[T string | []byte](name T, sections int) (section, lane int) {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return int(h % uint64(sections)), int(h >> 32 % Lanes)
}
