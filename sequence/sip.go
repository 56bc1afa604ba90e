package sequence

import "math/bits"

// sip is a key of SipHash-2-4 as the state in which a hash begins. The functions have one variable for each
// word of the state, because the compiler keeps no array in registers.
type sip struct{ v0, v1, v2, v3 uint64 }

func newSip(k0, k1 uint64) sip {
	return sip{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
}

func sipRound(v0, v1, v2, v3 uint64) (_, _, _, _ uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v2 += v1
	v0 = bits.RotateLeft64(v0, 32) + v3
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}

// short returns the hash of a message of n <= 7 bytes. They are the lowest bytes of word, in little-endian
// order, and its other bytes are 0.
func (k *sip) short(word uint64, n int) uint64 {
	return sipLast(k.v0, k.v1, k.v2, k.v3, word|uint64(n)<<56)
}

// word returns the hash of the 8 bytes of word.
func (k *sip) word(word uint64) uint64 {
	v0, v1, v2, v3 := sipRound(k.v0, k.v1, k.v2, k.v3^word)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return sipLast(v0^word, v1, v2, v3, 8<<56)
}

// sipLast returns the hash after the last word of a message.
func sipLast(v0, v1, v2, v3, word uint64) uint64 {
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^word)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0^word, v1, v2^0xff, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}
