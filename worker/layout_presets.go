package worker

import "time"

// Preset is a layout that has a name.
type Preset struct {
	Name   string
	Layout Layout
	// About is where it comes from, or what it is for, in a few words.
	About string
}

// The epochs of others, in Unix milliseconds. Those of the Java ones are
// midnights of their authors' time zone, UTC+8.
const (
	sonyflakeEpoch    = 1409529600000 // 2014-09-01
	sonyflakeV2Epoch  = 1735689600000 // 2025-01-01
	uidGeneratorEpoch = 1463673600000 // 2016-05-20 in UTC+8
	pearflowerEpoch   = 1483200000000 // 2017-01-01 in UTC+8
	discordEpoch      = 1420070400000 // 2015-01-01
	js53Epoch         = 1735689600000 // 2025-01-01
)

// Leaf is the default layout, Meituan Leaf's: 41 bits of milliseconds, 10 of
// worker, 12 of sequence.
func Leaf() Layout {
	return Layout{Epoch: twitterEpoch, Unit: time.Millisecond, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
}

// Twitter is the same split with the worker's ten bits shared between five of
// datacenter and five of worker, as Twitter's 2010 server had them.
func Twitter() Layout {
	l := Leaf()
	l.DatacenterBits, l.WorkerBits = 5, 5
	return l
}

// Sonyflake is sony/sonyflake's: ticks of 10 ms, and the sequence above the
// machine.
func Sonyflake() Layout {
	return Layout{
		Epoch: sonyflakeEpoch, Unit: 10 * time.Millisecond, TimeBits: 39, SequenceBits: 8, WorkerBits: 16,
		Order: Order{FieldRollback, FieldSegment, FieldSequence, FieldDatacenter, FieldWorker},
	}
}

// Presets are the layouts that have names, the default first.
func Presets() []Preset {
	with := func(l Layout, change func(*Layout)) Layout { change(&l); return l }
	return []Preset{
		{"leaf", Leaf(), "Meituan Leaf, bwmarrin/snowflake; the default"},
		{"twitter", Twitter(), "Twitter's server of 2010: datacenter and worker"},
		{"discord", with(Twitter(), func(l *Layout) { l.Epoch = discordEpoch }), "Discord: Twitter's split from 2015 on"},
		{"sonyflake", Sonyflake(), "sony/sonyflake v1: 10 ms, the machine lowest"},
		{"sonyflake-v2", with(Sonyflake(), func(l *Layout) { l.Epoch = sonyflakeV2Epoch }), "sony/sonyflake v2: the same from 2025 on"},
		{"uid-generator", Layout{
			Epoch: uidGeneratorEpoch, Unit: time.Second, TimeBits: 28, WorkerBits: 22, SequenceBits: 13,
		}, "Baidu uid-generator: seconds, 4 million workers"},
		{"pearflower", Layout{
			Epoch: pearflowerEpoch, Unit: time.Second, TimeBits: 31, SegmentBits: 3, WorkerBits: 10, SequenceBits: 19,
		}, "PearFlower: seconds, a segment above the worker"},
		{"js53", Layout{
			Epoch: js53Epoch, Unit: 10 * time.Millisecond, TimeBits: 38, WorkerBits: 7, SequenceBits: 8,
		}, "53 bits: exact as a number in JavaScript"},
		{"wide14", with(Leaf(), func(l *Layout) { l.WorkerBits, l.SequenceBits = 8, 14 }), "leaf with 16 million IDs a second for each of 256"},
		{"wide16", with(Leaf(), func(l *Layout) { l.WorkerBits, l.SequenceBits = 6, 16 }), "leaf with 65 million IDs a second for each of 64"},
	}
}

// PresetName is the name of a layout that has one, else "".
func PresetName(l Layout) string {
	l = l.normal()
	for _, p := range Presets() {
		if p.Layout == l {
			return p.Name
		}
	}
	return ""
}
