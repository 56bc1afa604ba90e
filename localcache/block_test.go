package localcache

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memfile"
)

// memory is a payload such as a caller stores.
type memory struct {
	Cluster   string `json:"cluster"`
	Node      string `json:"node"`
	Worker    int    `json:"worker"`
	Term      int64  `json:"term"`
	Confirmed bool   `json:"confirmed"`
	Stopped   bool   `json:"stopped"`
	Used      int    `json:"used"`
}

// memoryOf returns the decoded payload of a record.
func memoryOf(r Record) (m memory) {
	if r.Payload == nil {
		return m
	}
	if err := json.Unmarshal(r.Payload, &m); err != nil {
		panic(err)
	}
	return m
}

// with returns r with a change to its payload.
func (r Record) with(change func(*memory)) Record {
	m := memoryOf(r)
	change(&m)
	p, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	r.Payload = p
	return r
}

func sample() Record {
	return Record{ReservedUntil: 1_700_000_003_000, LeaseUntil: 1_700_000_060_000,
		ServedMs: 5_000}.with(func(m *memory) {
		*m = memory{Cluster: "c-1", Node: "n-1", Worker: 7, Term: 3, Confirmed: true, Used: 17}
	})
}

// FuzzStateFile: whatever stands in the state file, with valid checksums or without, the record that is loaded can be
// saved again and is the same then, and the reserved bound is not below that of the later block.
func FuzzStateFile(f *testing.F) {
	body, err := encodeBody(sample())
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range [][]byte{body, []byte(`{"reserved_until":9223372036854775807,"payload":"<"}`),
		[]byte(`{"released":true}`), {}} {
		f.Add(b, body, uint64(1), uint64(2), 2*blockSize)
		f.Add(b, body, uint64(2), uint64(2), 2*blockSize)
		f.Add(body, b, uint64(7), uint64(0), blockSize+1)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, genA, genB uint64, size int) {
		var file []byte
		for _, block := range []struct {
			body []byte
			gen  uint64
		}{{a, genA}, {b, genB}} {
			if len(block.body) <= maxBody {
				file = append(file, sealBlock(block.body, block.gen)...)
			} else {
				file = append(file, append(block.body, make([]byte, blockSize)...)[:blockSize]...)
			}
		}
		im, err := readImage(memfile.New(file[:min(max(size, 0), len(file))]))
		if err != nil {
			t.Fatal(err)
		}
		l := im.load(Fingerprint{})
		r := l.Record
		if has := l.Status == StatusRecord || l.Status == StatusReleased; !has {
			if !reflect.DeepEqual(r, Record{}) || (l.Status == StatusCorrupt) != (l.Reason != "") {
				t.Fatalf("%+v", l)
			}
			return
		}
		for _, block := range im.blocks {
			if block.err == nil && block.rec.Generation >= r.Generation && r.ReservedUntil < block.rec.ReservedUntil {
				t.Fatalf("%+v is below %+v", r, block.rec)
			}
		}
		if body, err := encodeBody(r); err == nil { // else JSON has made it longer
			got, err := decodeBlock(sealBlock(body, r.Generation))
			var x, y any
			_, _ = json.Unmarshal(r.Payload, &x), json.Unmarshal(got.Payload, &y)
			got.Payload, r.Payload = nil, nil
			if err != nil || !reflect.DeepEqual(got, r) || !reflect.DeepEqual(x, y) {
				t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
			}
		}
	})
}

// reseal gives a modified block a valid CRC.
func reseal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
	return b
}

func TestDecodeBlock(t *testing.T) {
	good := func() []byte { return sealBlock([]byte(`{"reserved_until":5,"payload":{"node":"x"}}`), 9) }
	tests := []struct {
		name string
		b    []byte
		want string // in the error; "" is a valid block
	}{
		{"valid", good(), ""},
		{"unknown fields are tolerated",
			sealBlock([]byte(`{"reserved_until":5,"payload":{"node":"x"},"later":{"a":1}}`), 9), ""},
		{"blank", make([]byte, blockSize), "blank"},
		{"short", good()[:4000], "truncated"},
		{"nothing", nil, "truncated"},
		{"text", bytes.Repeat([]byte("hello\n"), 683)[:blockSize], "not a flaked record"},
		{"crc", append(good()[:crcAt], 0, 0, 0, 0), "checksum"},
		{"old bytes behind the body", func() []byte { b := good(); b[2000] = 1; return b }(), "checksum"},
		{"newer format", func() []byte { b := good(); b[4]++; return reseal(b) }(), "another format: 4"},
		{"newer format, bad crc", func() []byte { b := good(); b[4]++; return b }(), "checksum"},
		{"older format", func() []byte { b := good(); b[4]--; return reseal(b) }(), "another format: 2"},
		{"format 0", func() []byte { b := good(); b[4] = 0; return reseal(b) }(), "another format: 0"},
		{"length", func() []byte { b := good(); b[17] = 255; return reseal(b) }(), "does not fit into a block"},
		{"length, cutting the body", func() []byte { b := good(); b[16]--; return reseal(b) }(), "does not decode"},
		{"length, over the body", func() []byte { b := good(); b[16]++; return reseal(b) }(), "does not decode"},
		{"not JSON", sealBlock([]byte("m=5"), 9), "does not decode"},
		{"wrong type", sealBlock([]byte(`{"reserved_until":"5"}`), 9), "does not decode"},
		{"number out of range", sealBlock([]byte(`{"reserved_until":9223372036854775808}`), 9), "does not decode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decodeBlock(tt.b)
			if tt.want == "" {
				if err != nil || r.ReservedUntil != 5 || memoryOf(r).Node != "x" || r.Generation != 9 {
					t.Fatalf("got %+v, %v", r, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !reflect.DeepEqual(r, Record{}) {
				t.Fatalf("got %+v, %v; want %q", r, err, tt.want)
			}
		})
	}
}

func TestPayloadSize(t *testing.T) {
	sized := func(n int) Record { return Record{Payload: json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)} }
	overhead := func() int { b, _ := json.Marshal(sized(2)); return len(b) - 2 }()
	if _, err := encodeBody(sized(maxBody - overhead)); err != nil {
		t.Errorf("largest: %v", err)
	}
	if _, err := encodeBody(sized(maxBody - overhead + 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
	if _, err := encodeBody(Record{Payload: json.RawMessage("x")}); err == nil {
		t.Error("a payload that is no JSON was taken")
	}
}

func TestFollows(t *testing.T) {
	slack := limits.BoundSlack.Milliseconds()
	tests := []struct {
		name   string
		change func(*Record)
		want   bool
	}{
		{"the same", func(*Record) {}, true},
		{"reserved bound up a second", func(r *Record) { r.ReservedUntil += 1000 }, true},
		{"reserved bound up by the slack", func(r *Record) { r.ReservedUntil += slack }, true},
		{"reserved bound up by more", func(r *Record) { r.ReservedUntil += slack + 1 }, false},
		{"reserved bound down", func(r *Record) { r.ReservedUntil-- }, false},
		{"lease bound and served up", func(r *Record) { r.LeaseUntil += 1e9; r.ServedMs += 1e9 }, true},
		{"lease bound down", func(r *Record) { r.LeaseUntil-- }, false},
		{"generation is ignored", func(r *Record) { r.Generation = 99 }, true},
		{"released", func(r *Record) { r.Released = true }, false},
		{"no longer confirmed", func(r *Record) { *r = r.with(func(m *memory) { m.Confirmed = false }) }, false},
		{"used", func(r *Record) { *r = r.with(func(m *memory) { m.Used++ }) }, false},
		{"no payload", func(r *Record) { r.Payload = nil }, false},
		{"fingerprint", func(r *Record) { r.Fingerprint.Inode = "x" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, r := sample(), sample()
			tt.change(&r)
			if got := r.follows(old); got != tt.want {
				t.Errorf("follows = %v, want %v", got, tt.want)
			}
		})
	}
	if got := raise(math.MaxInt64 - 5); got != math.MaxInt64 {
		t.Errorf("raise at the end of time: %d", got)
	}
	if got := raise(math.MinInt64); got != math.MinInt64+slack {
		t.Errorf("raise at the start of time: %d", got)
	}
}
