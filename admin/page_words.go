package admin

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/clusterview"
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

// clockWords formats a clock offset and its uncertainty, both in ms: "1.2ms ± 0.5ms fast".
// An offset within the uncertainty gets a sign instead of fast or slow.
func clockWords(ms, uncertain float64) string {
	sign, way := clusterview.Direction(ms, uncertain)
	if way != "" {
		sign = ""
	}
	return sign + clusterview.Size(ms) + " ± " + clusterview.Size(uncertain) + way
}

// wrapAfterCommas returns text as HTML with an optional line break after each comma, so
// that a narrow screen does not break it within words.
func wrapAfterCommas(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(text), ",", ",<wbr>"))
}

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
