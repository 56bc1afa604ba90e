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

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/core/limits"
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

func TestBlockRoundTrip(t *testing.T) {
	str := rapid.StringN(0, 60, 100)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64()
		payload, err := json.Marshal(map[string]any{"text": str.Draw(t, "text"),
			"numbers": rapid.SliceOfN(n, 0, 8).Draw(t, "numbers")})
		if err != nil {
			t.Fatal(err)
		}
		r := Record{
			ReservedUntil: n.Draw(t, "m"), LeaseUntil: n.Draw(t, "h"), ServedMs: n.Draw(t, "served"),
			Released: rapid.Bool().Draw(t, "released"), Payload: payload,
			Generation: rapid.Uint64().Draw(t, "generation"),
			Fingerprint: Fingerprint{str.Draw(t, "f1"), str.Draw(t, "f2"), str.Draw(t, "f3"),
				str.Draw(t, "f4"), str.Draw(t, "f5")},
		}
		p, err := encodeBody(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeBlock(sealBlock(p, r.Generation))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
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
