package sequence

// A scattered map is a permutation of the numbers below 2^Scatter: a Feistel network of 8 rounds whose
// halves may differ by one bit. The package documentation has the specification.

const scatterRounds = 8

// scatter returns the number that the permutation gives position p. If it is not below positions, it is
// the number after that, and so on, which is again a permutation.
func (v *Values) scatter(p int64) int64 {
	for {
		//mutant:s20-one-to-one by TestScatteredMapsAreOneToOne -> if p = v.permute(p) % v.positions; true {
		if p = v.permute(p); p < v.positions {
			return p
		}
	}
}

// gather returns the position to which scatter gives the number p.
func (v *Values) gather(p int64) int64 {
	for {
		if p = v.restore(p); p < v.positions {
			return p
		}
	}
}

// permute returns the number that follows x in the permutation of [0, 2^Scatter).
func (v *Values) permute(x int64) int64 {
	low := uint(v.Scatter+1) / 2 // bits of the half b before a round with an even number
	a, b := uint64(x)>>low, uint64(x)&(1<<low-1)
	high := uint(v.Scatter) - low
	for i := range uint64(scatterRounds) {
		a, b = b, a^v.half(b, i)&(1<<high-1)
		high, low = low, high
	}
	return int64(a<<low | b)
}

// restore returns the number that x follows in the permutation.
func (v *Values) restore(x int64) int64 {
	low := uint(v.Scatter+1) / 2
	a, b := uint64(x)>>low, uint64(x)&(1<<low-1)
	high := uint(v.Scatter) - low
	for i := uint64(scatterRounds); i > 0; i-- {
		high, low = low, high
		a, b = b^v.half(a, i-1)&(1<<high-1), a
	}
	return int64(a<<low | b)
}

// half returns the hash of a half of at most 32 bits in a round: of a message of 6 bytes, the half, the
// round, and the width.
func (v *Values) half(x, round uint64) uint64 {
	return v.hash(x|round<<32|uint64(v.Scatter)<<40, 6)
}
