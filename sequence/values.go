package sequence

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/dchest/siphash"
)

// Key is the secret of a salted or scattered sequence: 128 random bits. It is made with the
// sequence and never changes, because under another key other positions have the old values.
type Key [16]byte

// NewKey returns a random key.
func NewKey() (k Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// ParseKey parses a key of 32 hexadecimal digits.
func ParseKey(text string) (Key, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("the key of a sequence must have %d hexadecimal digits", 2*len(Key{}))
	}
	return Key(b), nil
}

// Hex returns the key as 32 hexadecimal digits.
func (k Key) Hex() string { return hex.EncodeToString(k[:]) }

// String does not return the key, so that no log has it.
func (k Key) String() string { return "(secret)" }

// Fingerprint returns 16 hexadecimal digits that differ from those of other keys, and do not show the
// key: the first 8 bytes of SHA-256 of the key.
func (k Key) Fingerprint() string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:8])
}

// Values is a map with its key. It turns positions into values and back, and needs nothing else: so a
// program that has the key can tell the values of a sequence without a lookup. The key of a plain map
// has no effect. The methods are safe for concurrent use and allocate no memory.
type Values struct {
	Map
	k0, k1    uint64 // the key
	positions int64
}

// NewValues returns the values of a map, for which Map.Check must return nil.
func NewValues(m Map, k Key) Values {
	le := binary.LittleEndian
	return Values{m, le.Uint64(k[:8]), le.Uint64(k[8:]), m.Positions()}
}

// hash returns the SipHash-2-4 of the lowest n bytes of word, 8 at most, in little-endian order.
func (v *Values) hash(word uint64, n int) uint64 {
	var message [8]byte
	binary.LittleEndian.PutUint64(message[:], word)
	return siphash.Hash(v.k0, v.k1, message[:n])
}

// Value returns the value of position p, 0 <= p < Positions().
func (v Values) Value(p int64) int64 {
	switch {
	case v.Salt > 0:
		return v.Map.Value(p) | v.tag(p)
	case v.Scatter > 0:
		return v.Start + v.scatter(p)
	}
	return v.Map.Value(p)
}

// Position returns the position of a value. ok is false if no position has it. A random number passes as a
// value of a salted sequence once in 2^Salt times. Each number from Start to Max is a value of a scattered
// one, so there a caller must also compare the position with the number of values that were issued.
func (v Values) Position(value int64) (p int64, ok bool) {
	if value < v.Start || value > v.Max {
		return 0, false
	}
	switch {
	case v.Salt > 0:
		p = value>>v.Salt - v.Start
	case v.Scatter > 0:
		if value-v.Start >= v.positions {
			return 0, false
		}
		return v.gather(value - v.Start), true
	default:
		p = (value - v.Start) / v.Increment
	}
	if p < 0 || p >= v.positions || v.Value(p) != value {
		return 0, false
	}
	return p, true
}

// tag returns the lowest bits of the value of position p of a salted map.
func (v Values) tag(p int64) int64 { return int64(v.hash(uint64(p), 8) & (1<<v.Salt - 1)) }
