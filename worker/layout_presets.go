package worker

import "time"

// Preset is a layout with a name.
type Preset struct {
	Name   string
	Layout Layout
	// About says in a few words where the layout is from, or what it is for.
	About string
}

// Epochs of other generators, in Unix milliseconds. Those of the Java generators are
// midnights in the time zone of their authors, UTC+8.
const (
	sonyflakeEpoch    = 1409529600000 // 2014-09-01
	sonyflakeV2Epoch  = 1735689600000 // 2025-01-01
	uidGeneratorEpoch = 1463673600000 // 2016-05-20 in UTC+8
	pearflowerEpoch   = 1483200000000 // 2017-01-01 in UTC+8
	discordEpoch      = 1420070400000 // 2015-01-01
	js53Epoch         = 1735689600000 // 2025-01-01
)

// Leaf returns the default layout, that of Meituan Leaf: 41 bits of milliseconds, 10 of
// worker, 12 of sequence.
func Leaf() Layout {
	return Layout{Epoch: twitterEpoch, Unit: time.Millisecond, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
}

// Twitter returns the layout of Twitter's server of 2010. It is Leaf's, with the ten bits
// of the worker divided into five of datacenter and five of worker.
func Twitter() Layout {
	l := Leaf()
	l.DatacenterBits, l.WorkerBits = 5, 5
	return l
}

// Sonyflake returns the layout of sony/sonyflake v1: ticks of 10 ms, and the sequence above
// the worker.
func Sonyflake() Layout {
	return Layout{
		Epoch: sonyflakeEpoch, Unit: 10 * time.Millisecond, TimeBits: 39, SequenceBits: 8, WorkerBits: 16,
		Order: Order{FieldRollback, FieldSegment, FieldSequence, FieldDatacenter, FieldWorker},
	}
}

// Presets returns the layouts that have names, the default first.
func Presets() []Preset {
	with := func(l Layout, change func(*Layout)) Layout { change(&l); return l }
	return []Preset{
		{"leaf", Leaf(), "Meituan Leaf, bwmarrin/snowflake; the default"},
		{"twitter", Twitter(), "Twitter's server of 2010: datacenter and worker"},
		{"discord", with(Twitter(), func(l *Layout) { l.Epoch = discordEpoch }),
			"Discord: Twitter's split from 2015 on"},
		{"sonyflake", Sonyflake(), "sony/sonyflake v1: 10 ms, the machine lowest"},
		{"sonyflake-v2", with(Sonyflake(), func(l *Layout) { l.Epoch = sonyflakeV2Epoch }),
			"sony/sonyflake v2: the same from 2025 on"},
		{"uid-generator", Layout{
			Epoch: uidGeneratorEpoch, Unit: time.Second, TimeBits: 28, WorkerBits: 22, SequenceBits: 13,
		}, "Baidu uid-generator: seconds, 4 million workers"},
		{"pearflower", Layout{
			Epoch: pearflowerEpoch, Unit: time.Second, TimeBits: 31, SegmentBits: 3, WorkerBits: 10, SequenceBits: 19,
		}, "PearFlower: seconds, a segment above the worker"},
		{"js53", Layout{
			Epoch: js53Epoch, Unit: 10 * time.Millisecond, TimeBits: 38, WorkerBits: 7, SequenceBits: 8,
		}, "53 bits: exact as a number in JavaScript"},
		{"wide14", with(Leaf(), func(l *Layout) { l.WorkerBits, l.SequenceBits = 8, 14 }),
			"leaf with 16 million IDs a second for each of 256"},
		{"wide16", with(Leaf(), func(l *Layout) { l.WorkerBits, l.SequenceBits = 6, 16 }),
			"leaf with 65 million IDs a second for each of 64"},
	}
}

// PresetName returns the name of the preset that is equal to the layout, or "".
func PresetName(l Layout) string {
	l = l.canonical()
	for _, p := range Presets() {
		if p.Layout == l {
			return p.Name
		}
	}
	return ""
}
