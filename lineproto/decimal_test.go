package lineproto

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/worker"
)

// A run is rendered as its IDs one by one: at carries, at a change of the number of digits, at the
// greatest ID, and with steps other than 1.
func TestRunsAreRenderedAsTheirIDs(t *testing.T) {
	powers := []int64{0}
	for p := int64(10); p <= math.MaxInt64/10; p *= 10 {
		powers = append(powers, p)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := worker.Run{Len: rapid.IntRange(1, 1300).Draw(t, "len"),
			Step: rapid.SampledFrom([]worker.ID{1, 1, 1, 2, 7, 500, 999, 1000, 1 << 16}).Draw(t, "step")}
		top := math.MaxInt64 - int64(r.Step)*int64(r.Len-1)
		near := rapid.SampledFrom(append(powers, top)).Draw(t, "near")
		r.First = worker.ID(min(top, max(0, near+rapid.Int64Range(-1200, 1200).Draw(t, "off"),
			rapid.Int64Range(0, 2).Draw(t, "any")*rapid.Int64Range(0, top/2).Draw(t, "first"))))
		before := rapid.SampledFrom([]string{"", "x\n", "99999999999999999\n"}).Draw(t, "before")
		var lf, crlf, bulk, integers strings.Builder
		for i := range r.Len {
			text := fmt.Sprint(int64(r.At(i)))
			lf.WriteString(text + "\n")
			crlf.WriteString(text + "\r\n")
			integers.WriteString(":" + text + "\r\n")
			fmt.Fprintf(&bulk, "$%d\r\n%s\r\n", len(text), text)
		}
		for _, c := range []struct {
			got  []byte
			want string
		}{
			{appendRun([]byte(before), r, 0, "\n"), lf.String()}, {appendRun([]byte(before), r, 0, "\r\n"), crlf.String()},
			{appendRun([]byte(before), r, '$', "\r\n"), bulk.String()},
			{appendRun([]byte(before), r, ':', "\r\n"), integers.String()},
		} {
			if string(c.got) != before+c.want {
				t.Fatalf("%+v: %q, want %q", r, c.got, before+c.want)
			}
		}
	})
}
