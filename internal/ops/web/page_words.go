package web

import (
	"fmt"
	"strconv"
	"time"
)

// decodedView is a decoded ID as the page shows it.
type decodedView struct {
	Error string
	decoded
	Bits []bitsView
}

type bitsView struct {
	part
	Digits string
	Means  string
}

// bitsOf returns the sign bit and the layout's fields, from the most significant bit.
func bitsOf(d decoded) []bitsView {
	bits := []bitsView{{part{"sign", 1, 63, 0}, "0", "always 0"}}
	for _, p := range d.Parts {
		b := bitsView{part: p, Digits: fmt.Sprintf("%0*b", int(p.Bits), p.Value)}
		switch p.Field {
		case "time":
			b.Means = d.Time
		case "worker":
			b.Means = "worker " + strconv.FormatInt(p.Value, 10)
		case "sequence":
			b.Means = "number " + strconv.FormatInt(p.Value, 10) + " of its tick"
		default:
			b.Means = p.Field + " " + strconv.FormatInt(p.Value, 10)
		}
		bits = append(bits, b)
	}
	return bits
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
