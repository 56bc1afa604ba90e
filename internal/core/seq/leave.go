package seq

import "slices"

// Leave makes this node give its ordered sequences to other nodes, if there are any. From then on it forwards requests.
func (i *Issuer) Leave() {
	if i.ordered.Leave() {
		i.Wake()
	}
}

// HasGivenAll reports whether no section is left to give away: this node owns none, or no other node may own any.
func (i *Issuer) HasGivenAll() bool {
	return !i.ordered.HadSections() || !i.ordered.HasOthers() || !i.owns()
}

// owns reports whether this node owns a section.
func (i *Issuer) owns() bool {
	return slices.ContainsFunc(i.series.list(), func(s *series) bool {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return s.owned() != nil
	})
}
