package sequence

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// testKey returns a key that depends on n.
func testKey(n int) (k Key) {
	for i := range k {
		k[i] = byte(i + n)
	}
	return k
}

func salted(start int64, salt int, most int64) Map {
	return Map{Start: start, Increment: 1, Max: most, Salt: salt}
}

func scattered(start int64, width int, most int64) Map {
	return Map{Start: start, Increment: 1, Max: most, Scatter: width}
}

// The hashes are those of the test vectors in the reference implementation of SipHash-2-4: messages 00 01 02 ...
// under the key 00 01 ... 0f.
func TestSipHash(t *testing.T) {
	v := NewValues(salted(1, 1, 100), testKey(0))
	for n, want := range map[int]string{
		0: "310e0edd47db6f72", 1: "fd67dc93c539f874", 5: "8da699cd64557618", 6: "cee3fe586e46c9cb",
		7: "37d1018bf50002ab", 8: "6224939a79f5f593",
	} {
		var message [8]byte
		for i := range n {
			message[i] = byte(i)
		}
		word := binary.LittleEndian.Uint64(message[:])
		got := v.hash(word, n)
		if text := hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, got)); text != want {
			t.Errorf("%d bytes: %s, not %s", n, text, want)
		}
	}
}

// whole checks that a map is one to one, and that Position is its inverse and knows no other value.
func whole(t *testing.T, m Map) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	v := NewValues(m, testKey(int(m.Max)))
	seen := make([]bool, m.Max-m.Start<<m.Salt+1)
	for p := range m.Positions() {
		value := v.Value(p)
		if value < m.Value(p) || value > m.Highest(p) || value > m.Max {
			t.Fatalf("%+v: position %d has the value %d", m, p, value)
		}
		if seen[value-m.Start<<m.Salt] {
			t.Fatalf("%+v: position %d has the value %d again", m, p, value)
		}
		seen[value-m.Start<<m.Salt] = true
		if back, ok := v.Position(value); !ok || back != p {
			t.Fatalf("%+v: value %d of position %d has position %d, %v", m, value, p, back, ok)
		}
	}
	for value := m.Start - 2; value <= m.Max+2; value++ {
		at := value - m.Start<<m.Salt
		if _, ok := v.Position(value); ok != (at >= 0 && at < int64(len(seen)) && seen[at]) {
			t.Fatalf("%+v: value %d is a value: %v", m, value, ok)
		}
	}
}

func TestScatteredMapsAreOneToOne(t *testing.T) {
	for width := MinScatter; width <= 18; width++ {
		for _, m := range []Map{
			scattered(1, width, MaxJavaScript), scattered(0, width, 1<<width-1),
			scattered(7, width, 7+int64(1)<<(width-1)),
			scattered(1000, width, 1000+int64(1)<<(width-1)+12345), scattered(1, width, 1<<width-1),
		} {
			m.Max = min(m.Max, m.Start+1<<width+100) // the test looks at each value up to max
			whole(t, m)
		}
	}
}

func TestSaltedMapsAreOneToOne(t *testing.T) {
	for salt := 1; salt <= MaxSalt; salt++ {
		for _, m := range []Map{
			salted(0, salt, 1<<17-1), salted(1, salt, 1<<17+77), salted(1, salt, 1<<(salt+1)-1),
			salted(3, salt, 4<<salt-1), salted(3, salt, 5<<salt-2),
		} {
			whole(t, m)
		}
	}
	whole(t, Map{Start: 5, Increment: 7, Max: 1000})
}

// Large domains are tried at random, and at both ends.
func TestLargeMapsHaveAnInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for n := range 20_000 {
		m := salted(rng.Int64N(1<<rng.IntN(40)+1), 1+rng.IntN(MaxSalt), math.MaxInt64-rng.Int64N(1000))
		if n%2 == 0 {
			m = scattered(rng.Int64N(1000), MinScatter+rng.IntN(MaxScatter-MinScatter+1), 0)
			m.Max = m.Start + int64(1)<<(m.Scatter-1) + rng.Int64N(int64(1)<<(m.Scatter-1)-1000)
		}
		if err := m.Check(); err != nil {
			t.Fatal(m, err)
		}
		v := NewValues(m, testKey(n))
		for _, p := range []int64{0, 1, rng.Int64N(m.Positions()), m.Positions() - 1} {
			value := v.Value(p)
			if back, ok := v.Position(value); !ok || back != p || value > m.Max || value < m.Start {
				t.Fatalf("%+v: position %d has value %d, which has position %d, %v", m, p, value, back, ok)
			}
		}
	}
}

func TestLastPositions(t *testing.T) {
	for _, c := range []struct {
		m         Map
		positions int64
	}{
		{scattered(0, 63, math.MaxInt64), math.MaxInt64}, // one less than there are
		{scattered(1, 63, math.MaxInt64), math.MaxInt64},
		{scattered(1, 40, math.MaxInt64), 1 << 40},
		{scattered(1, 53, MaxJavaScript), MaxJavaScript},
		{salted(0, 16, math.MaxInt64), 1 << 47},
		{salted(1, 1, MaxJavaScript), 1<<52 - 1},
		{salted(1, 3, 16), 1},
		{salted(1, 3, 22), 1},
		{salted(1, 3, 23), 2},
	} {
		if n := c.m.Positions(); n != c.positions {
			t.Errorf("%+v: %d positions, not %d", c.m, n, c.positions)
		}
	}
}

func TestPositionAtOrAboveIsTheInverseOfValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for n := range 40_000 {
		m := salted(rng.Int64N(100), 1+rng.IntN(8), 1<<16+rng.Int64N(1000))
		if n%2 == 0 {
			m = Map{Start: rng.Int64N(1000), Increment: 1 + rng.Int64N(50), Max: 1000 + rng.Int64N(1000)}
		}
		at := rng.Int64N(2*m.Max + 2)
		p, above := m.PositionAtOrAbove(at), m.PositionAbove(at)
		switch {
		case p > m.Positions(), p < m.Positions() && m.Value(p) < at, p > 0 && m.Value(p-1) >= at:
			t.Fatalf("%+v: from %d on: position %d", m, at, p)
		case above > m.Positions(), above < m.Positions() && m.Value(above) <= at, above > 0 && m.Value(above-1) > at:
			t.Fatalf("%+v: above %d: position %d", m, at, above)
		}
	}
	m := scattered(100, 20, math.MaxInt64)
	for v, want := range map[int64]int64{0: 0, 99: 0, 100: 1 << 20, 1 << 20: 1 << 20, math.MaxInt64: 1 << 20} {
		if p := m.PositionAbove(v); p != want {
			t.Errorf("above %d: position %d, not %d", v, p, want)
		}
	}
}

func TestCheckOfKeyedMaps(t *testing.T) {
	for text, m := range map[string]Map{
		"":                              scattered(1, 40, MaxJavaScript),
		"salt must be 1 to 16":          salted(1, 17, math.MaxInt64),
		"salt must be 1 to 16 bits":     salted(1, -1, math.MaxInt64),
		"scatter must be 16 to 63":      scattered(1, 15, math.MaxInt64),
		"scatter must be 16 to 63 bits": scattered(1, 64, math.MaxInt64),
		"not be combined":               {Start: 1, Increment: 1, Max: MaxJavaScript, Salt: 1, Scatter: 40},
		"increment must be 1":           {Start: 1, Increment: 2, Max: MaxJavaScript, Salt: 1},
		"(start + 1) * 8 - 1":           salted(1, 3, 14),
		"fewer than 63 bits":            scattered(1, 63, MaxJavaScript),
		"fewer than 20 bits":            scattered(1, 20, 1<<19),
	} {
		err := m.Check()
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestKey(t *testing.T) {
	k := NewKey()
	if k == NewKey() {
		t.Error("two keys are the same")
	}
	if again, err := ParseKey(k.Hex()); err != nil || again != k {
		t.Error(again, err)
	}
	for _, text := range []string{"", k.Hex()[1:], k.Hex() + "0", strings.Repeat("x", 32)} {
		if _, err := ParseKey(text); err == nil {
			t.Errorf("%q passes", text)
		}
	}
	if k.String() == k.Hex() || k.Fingerprint() == testKey(0).Fingerprint() ||
		testKey(0).Fingerprint() != "be45cb2605bf36be" {
		t.Error(k, testKey(0).Fingerprint())
	}
}

func TestValuesAllocateNothing(t *testing.T) {
	for _, m := range []Map{scattered(1, 40, MaxJavaScript), salted(1, 8, MaxJavaScript)} {
		v := NewValues(m, testKey(1))
		if n := testing.AllocsPerRun(100, func() { v.Position(v.Value(5)) }); n != 0 {
			t.Errorf("%+v: %v allocations", m, n)
		}
	}
}

// Implementations in other languages must give these values, too. They were compared with the specification in doc.go.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/maps.json")
	var all []struct {
		Key string
		Map
		Positions, Values []number
		Others            []number // they are no values
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	for _, c := range all {
		k, err := ParseKey(c.Key)
		if err != nil || c.Check() != nil || len(c.Positions) != len(c.Values) {
			t.Fatal(c.Map, err, c.Check())
		}
		v := NewValues(c.Map, k)
		for j, p := range c.Positions {
			if got := v.Value(int64(p)); got != int64(c.Values[j]) {
				t.Errorf("%+v: position %d has the value %d, not %d", c.Map, p, got, c.Values[j])
			}
		}
		for _, other := range c.Others {
			if p, ok := v.Position(int64(other)); ok {
				t.Errorf("%+v: %d is the value of position %d", c.Map, other, p)
			}
		}
	}
}

// number is an integer that JSON has as a string.
type number int64

func (n *number) UnmarshalText(text []byte) (err error) {
	*(*int64)(n), err = strconv.ParseInt(string(text), 10, 64)
	return err
}
