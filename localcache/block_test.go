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
)

func sample() Record {
	return Record{
		ClusterName: "orders", ClusterUUID: "c-1", EpochMs: 1_577_836_800_000, Layout: "41/10/12",
		LeaseMaxMs: 86_400_000, SettleMs: 20_000, Used: 17,
		Node: "n-1", Ticket: "n-0000000007", Worker: 7, Term: 3, Nonce: "abc",
		Settled: true, Lo: 1_700_000_000_000, M: 1_700_000_003_000, H: 1_700_000_060_000,
		ServedMs: 5_000, Rotations: []int64{1_700_000_000_001},
	}
}

func TestBlockRoundTrip(t *testing.T) {
	str := rapid.StringN(0, 60, 100)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64()
		r := Record{
			ClusterName: str.Draw(t, "name"), ClusterUUID: str.Draw(t, "cluster"), EpochMs: n.Draw(t, "epoch"),
			Layout: str.Draw(t, "layout"), DatacenterID: rapid.Int().Draw(t, "dc"), LeaseMaxMs: n.Draw(t, "w"),
			SettleMs: n.Draw(t, "settle"), Used: rapid.Int().Draw(t, "used"), Node: str.Draw(t, "node"),
			Ticket: str.Draw(t, "ticket"), Worker: rapid.Int().Draw(t, "worker"), Term: n.Draw(t, "term"),
			Nonce: str.Draw(t, "nonce"), PendingTerm: n.Draw(t, "pterm"), PendingNonce: str.Draw(t, "pnonce"),
			Settled: rapid.Bool().Draw(t, "settled"), Stopped: rapid.Bool().Draw(t, "stopped"),
			Released: rapid.Bool().Draw(t, "released"), Lo: n.Draw(t, "lo"), M: n.Draw(t, "m"), H: n.Draw(t, "h"),
			ServedMs: n.Draw(t, "served"), Rotations: rapid.SliceOfN(n, 0, 8).Draw(t, "rotations"),
			Generation: rapid.Uint64().Draw(t, "generation"),
			Fingerprint: Fingerprint{str.Draw(t, "f1"), str.Draw(t, "f2"), str.Draw(t, "f3"),
				str.Draw(t, "f4"), str.Draw(t, "f5")},
		}.clone()
		p, err := encodePayload(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeBlock(sealBlock(p, r.Generation))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
		}
	})
}

// reseal gives a doctored block a CRC that holds.
func reseal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
	return b
}

func TestDecodeBlock(t *testing.T) {
	good := func() []byte { return sealBlock([]byte(`{"m":5,"node":"x"}`), 9) }
	tests := []struct {
		name string
		b    []byte
		want string // in the error; "" is a valid block
	}{
		{"valid", good(), ""},
		{"unknown fields are tolerated", sealBlock([]byte(`{"m":5,"node":"x","later":{"a":1}}`), 9), ""},
		{"blank", make([]byte, blockSize), "blank"},
		{"short", good()[:4000], "cut short"},
		{"nothing", nil, "cut short"},
		{"text", bytes.Repeat([]byte("hello\n"), 683)[:blockSize], "not a flaked record"},
		{"crc", append(good()[:crcAt], 0, 0, 0, 0), "checksum"},
		{"old bytes behind the payload", func() []byte { b := good(); b[2000] = 1; return b }(), "checksum"},
		{"newer format", func() []byte { b := good(); b[4] = 2; return reseal(b) }(), "newer format"},
		{"newer format, bad crc", func() []byte { b := good(); b[4] = 2; return b }(), "checksum"},
		{"format 0", func() []byte { b := good(); b[4] = 0; return reseal(b) }(), "unknown format"},
		{"length", func() []byte { b := good(); b[17] = 255; return reseal(b) }(), "does not fit"},
		{"length, cutting the payload", func() []byte { b := good(); b[16]--; return reseal(b) }(), "does not decode"},
		{"length, over the payload", func() []byte { b := good(); b[16]++; return reseal(b) }(), "does not decode"},
		{"not JSON", sealBlock([]byte("m=5"), 9), "does not decode"},
		{"wrong type", sealBlock([]byte(`{"m":"5"}`), 9), "does not decode"},
		{"number out of range", sealBlock([]byte(`{"m":9223372036854775808}`), 9), "does not decode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decodeBlock(tt.b)
			if tt.want == "" {
				if err != nil || r.M != 5 || r.Node != "x" || r.Generation != 9 {
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
	overhead := func() int { b, _ := json.Marshal(Record{Nonce: "x"}); return len(b) - 1 }()
	if _, err := encodePayload(Record{Nonce: strings.Repeat("x", maxPayload-overhead)}); err != nil {
		t.Errorf("largest: %v", err)
	}
	if _, err := encodePayload(Record{Nonce: strings.Repeat("x", maxPayload-overhead+1)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
}

func TestFollows(t *testing.T) {
	slack := MSlack.Milliseconds()
	tests := []struct {
		name   string
		change func(*Record)
		want   bool
	}{
		{"the same", func(*Record) {}, true},
		{"M up a second", func(r *Record) { r.M += 1000 }, true},
		{"M up by the slack", func(r *Record) { r.M += slack }, true},
		{"M up by more", func(r *Record) { r.M += slack + 1 }, false},
		{"M down", func(r *Record) { r.M-- }, false},
		{"H and served up", func(r *Record) { r.H += 1e9; r.ServedMs += 1e9 }, true},
		{"H down", func(r *Record) { r.H-- }, false},
		{"generation is ignored", func(r *Record) { r.Generation = 99 }, true},
		{"no longer settled", func(r *Record) { r.Settled = false }, false},
		{"stopped", func(r *Record) { r.Stopped = true }, false},
		{"released", func(r *Record) { r.Released = true }, false},
		{"cluster", func(r *Record) { r.ClusterUUID = "c-2" }, false},
		{"node", func(r *Record) { r.Node = "n-2" }, false},
		{"worker", func(r *Record) { r.Worker++ }, false},
		{"term", func(r *Record) { r.Term++ }, false},
		{"pending nonce", func(r *Record) { r.PendingNonce = "x" }, false},
		{"used", func(r *Record) { r.Used++ }, false},
		{"rotations", func(r *Record) { r.Rotations = nil }, false},
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
