// Package sequence has what programs and servers share about named sequences: their names, the keys of requests, the
// map from positions to values, and the rights of a token. It does no I/O.
//
// A position is a number 0, 1, 2, ... of a sequence. No position is given out twice. The map turns
// a position into the value that clients get. Values turns a value back into its position, so that a
// program with the key can verify the values of a salted or scattered sequence without a lookup.
//
// # Specification of the maps
//
// This is for implementations in other languages. Map.Check has the bounds of the settings, and testdata/maps.json
// has test vectors. Numbers are unsigned. SipHash is SipHash-2-4 with a 128-bit key and a 64-bit result, read as a
// little-endian number.
//
// Plain: the value of position p is start + p x increment.
//
// Salt K: the value of p is (start + p) x 2^K + (SipHash(the 8 bytes of p, little-endian) mod 2^K). A number v is a
// value if v is that of p = floor(v / 2^K) - start, and p >= 0, and v <= max, and (start + p + 1) x 2^K - 1 <= max.
//
// Scatter W: let N be the lesser of 2^W and max - start + 1, and at most 2^63 - 1. The value of p is start + x, where x
// is p after the permutation, applied again until the result is less than N. The permutation has 8 rounds. Split the W
// bits into a, the upper floor(W/2) bits, and b, the lower ceil(W/2) bits. In round r = 0 to 7, a and b become b and
// a XOR (SipHash(M) mod 2^(bits of a)). M has six bytes: b as four bytes, little-endian, then r, then W. For odd W the
// lengths of the two halves change places in each round. The result is a and b after round 7. The inverse does the
// rounds from 7 to 0.
package sequence
