package worker

import (
	"testing"

	"pgregory.net/rapid"
)

// published has the expressions by which generators that are not in Go make an ID, as their
// authors published them. t is the number of their ticks since the epoch.
var published = []struct {
	name, layout string
	id           func(t, datacenter, worker, segment, sequence int64) int64
}{
	{"Twitter's IdWorker", "twitter", func(t, datacenter, worker, _, sequence int64) int64 {
		return t<<22 | datacenter<<17 | worker<<12 | sequence
	}},
	{"Leaf's SnowflakeIDGenImpl", "leaf", func(t, _, worker, _, sequence int64) int64 {
		return t<<22 | worker<<12 | sequence
	}},
	{"uid-generator's BitsAllocator", "uid-generator", func(t, _, worker, _, sequence int64) int64 {
		const timestampShift, workerIdShift = 22 + 13, 13
		return t<<timestampShift | worker<<workerIdShift | sequence
	}},
	{"PearFlower with 3 bits of segment", "pearflower", func(t, _, worker, segment, sequence int64) int64 {
		const timestampShift, segmentShift, workerIdShift = 10 + 3 + 19, 10 + 19, 19
		return t<<timestampShift | segment<<segmentShift | worker<<workerIdShift | sequence
	}},
	{"PearFlower of Bee 1.7.3", "time=31@1s,worker=10,segment=3,sequence=19,epoch=1483200000000",
		func(t, _, worker, segment, sequence int64) int64 {
			const timestampShift, workerIdShift, segmentShift = 10 + 3 + 19, 3 + 19, 19
			return t<<timestampShift | worker<<workerIdShift | segment<<segmentShift | sequence
		}},
	{"PearFlower of Bee 1.8", "pearflower,segment=9,sequence=13", func(t, _, worker, segment, sequence int64) int64 {
		const timestampShift, segmentShift, workerIdShift = 10 + 9 + 13, 10 + 13, 13
		return t<<timestampShift | segment<<segmentShift | worker<<workerIdShift | sequence
	}},
}

func TestPublishedFormulas(t *testing.T) {
	for _, p := range published {
		l, err := ParseLayout(p.layout)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, rapid.MakeCheck(func(t *rapid.T) {
			below := func(f Field) int64 { return rapid.Int64Range(0, 1<<l.Bits(f)-1).Draw(t, f.String()) }
			f := Fields{
				Tick: Tick(below(FieldTime)), Datacenter: below(FieldDatacenter), Worker: below(FieldWorker),
				Segment: below(FieldSegment), Sequence: below(FieldSequence),
			}
			want := p.id(int64(f.Tick), f.Datacenter, f.Worker, f.Segment, f.Sequence)
			if got, err := l.Encode(f); err != nil || int64(got) != want {
				t.Fatalf("%+v: %d, %v; want %d", f, got, err, want)
			}
			if got, err := l.Decode(ID(want)); err != nil || got != f {
				t.Fatalf("%d: %+v, %v; want %+v", want, got, err, f)
			}
		}))
	}
}

// The time fields begin and end when their authors say.
func TestEpochsAndEnds(t *testing.T) {
	for _, row := range []struct{ layout, from, to string }{
		{"leaf", "2010-11-04T01:42:54.657Z", "2080-07-10T17:30:30.209Z"},
		{"discord", "2015-01-01T00:00:00Z", "2084-09-06T15:47:35.552Z"},
		{"sonyflake", "2014-09-01T00:00:00Z", "2188-11-16T03:28:58.88Z"},
		{"sonyflake-v2", "2025-01-01T00:00:00Z", "2199-03-19T03:28:58.88Z"},
		// "until to 2024-11-20 21:24:16", in the time zone of the authors, UTC+8.
		{"uid-generator", "2016-05-19T16:00:00Z", "2024-11-20T13:24:16Z"},
		{"pearflower", "2016-12-31T16:00:00Z", "2085-01-18T19:14:08Z"},
		{"time=60@1h,worker=2,sequence=1", "2010-11-04T01:42:54.657Z", "9999-12-31T23:59:59Z"}, // beyond int64
		{"js53", "2025-01-01T00:00:00Z", "2112-02-09T13:44:29.44Z"},
	} {
		l, err := ParseLayout(row.layout)
		if err != nil {
			t.Fatal(err)
		}
		const rfc = "2006-01-02T15:04:05.999Z07:00"
		if from, to := l.Time(Fields{}).Format(rfc), l.Expires().Format(rfc); from != row.from || to != row.to {
			t.Errorf("%s lasts from %s to %s, want %s to %s", row.layout, from, to, row.from, row.to)
		}
	}
}
