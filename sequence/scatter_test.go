package sequence

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// Neighbours do not show: if one bit of a position changes, each bit of the value changes in half of all cases, and so
// does each bit of the value if one bit of the key changes. The bounds are six standard deviations.
func TestScatterAvalanche(t *testing.T) {
	const trials = 20_000
	for _, width := range []int{16, 17, 31, 40, 63} {
		rng := rand.New(rand.NewPCG(uint64(width), 5))
		for name, changed := range map[string]func(x int64, k Key) (int64, Key){
			"the lowest bit":   func(x int64, k Key) (int64, Key) { return x ^ 1, k },
			"the highest bit":  func(x int64, k Key) (int64, Key) { return x ^ 1<<(width-1), k },
			"a bit of the key": func(x int64, k Key) (int64, Key) { k[rng.IntN(16)] ^= 1 << rng.IntN(8); return x, k },
		} {
			flips := make([]float64, width)
			for range trials {
				var k Key
				binary.LittleEndian.PutUint64(k[:], rng.Uint64())
				binary.LittleEndian.PutUint64(k[8:], rng.Uint64())
				x := int64(rng.Uint64() >> (64 - width))
				y, other := changed(x, k)
				m := scattered(0, width, math.MaxInt64)
				from, to := NewValues(m, k), NewValues(m, other)
				d := from.permute(x) ^ to.permute(y)
				for bit := range width {
					flips[bit] += float64(d >> bit & 1)
				}
			}
			for bit, n := range flips {
				if off := math.Abs(n-trials/2) / math.Sqrt(trials/4); off > 6 {
					t.Errorf("width %d, %s: bit %d changes in %.2f %% of the cases", width, name, bit, 100*n/trials)
				}
			}
		}
	}
}

// chiSquare returns by how many standard deviations the counts differ more from an even spread than random ones.
func chiSquare(counts []int, total int) float64 {
	want, sum := float64(total)/float64(len(counts)), 0.0
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	freedom := float64(len(counts) - 1)
	return (sum - freedom) / math.Sqrt(2*freedom)
}

// The differences of neighbouring values are spread evenly, and so are the tags of a salted map.
func TestNeighboursDoNotShow(t *testing.T) {
	const n, classes = 1 << 18, 256
	for _, width := range []int{20, 33, 40, 63} {
		v := NewValues(scattered(0, width, math.MaxInt64), testKey(width))
		differences, xors := make([]int, classes), make([]int, classes)
		var ones int
		for p := range int64(n) {
			a, b := v.Value(p), v.Value(p+1)
			differences[(b-a)>>(width-8)&(classes-1)]++
			xors[(a^b)&(classes-1)]++
			ones += bits.OnesCount64(uint64(a ^ b))
		}
		if d, x := chiSquare(differences, n), chiSquare(xors, n); math.Abs(d) > 6 || math.Abs(x) > 6 {
			t.Errorf("width %d: differences %.1f, bits %.1f standard deviations from an even spread", width, d, x)
		}
		if part := float64(ones) / float64(n*width); math.Abs(part-0.5) > 0.005 {
			t.Errorf("width %d: neighbours differ in %.2f %% of the bits", width, 100*part)
		}
	}
	for _, salt := range []int{1, 8, 16} {
		v := NewValues(salted(1, salt, math.MaxInt64), testKey(salt))
		tags, pairs := make([]int, 1<<salt), make([]int, 4)
		for p := range int64(n) {
			tags[v.tag(p)]++
			pairs[v.tag(p)&1<<1|v.tag(p+1)&1]++
		}
		if d, x := chiSquare(tags, n), chiSquare(pairs, n); math.Abs(d) > 6 || math.Abs(x) > 6 {
			t.Errorf("salt %d: tags %.1f, pairs %.1f standard deviations from an even spread", salt, d, x)
		}
	}
}

func BenchmarkScatter(b *testing.B) { benchmarkValues(b, scattered(1, 40, MaxJavaScript)) }

func BenchmarkScatterPosition(b *testing.B) {
	v, p := NewValues(scattered(1, 40, MaxJavaScript), testKey(1)), int64(0)
	b.ReportAllocs()
	for i := range b.N {
		at, _ := v.Position(int64(i + 1))
		p += at
	}
	_ = p
}

func BenchmarkScatterWalk(b *testing.B) { benchmarkValues(b, scattered(1, 40, 1<<39+1)) }

func BenchmarkSalt(b *testing.B) { benchmarkValues(b, salted(1, 8, MaxJavaScript)) }

func benchmarkValues(b *testing.B, m Map) {
	v, sum := NewValues(m, testKey(1)), int64(0)
	b.ReportAllocs()
	for i := range b.N {
		sum += v.Value(int64(i & (1<<30 - 1)))
	}
	_ = sum
}
