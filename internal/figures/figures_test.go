package figures

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		values []float64
		want   float64
		ok     bool
	}{{nil, 0, false}, {[]float64{3}, 3, true}, {[]float64{9, 1, 2}, 2, true}, {[]float64{4, 1, 2, 9}, 3, true}} {
		if got, ok := Median(row.values); got != row.want || ok != row.ok {
			t.Errorf("%v: %v, %t", row.values, got, ok)
		}
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.4: "999", 999.6: "1,000", 4096000: "4,096,000"} {
		if got := Thousands(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	table.Row("a", "b")
	table.Row("1", "2")
	if got, want := table.String(), "| a | b |\n|---|---|\n| 1 | 2 |\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const begin, end = "<!-- x:begin -->", "<!-- x:end -->"
	write("before " + begin + " old " + end + " behind")
	for range 2 {
		if err := Between(path, "x", "new"); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if want := "before " + begin + "\n\nnew\n" + end + " behind"; string(got) != want {
			t.Errorf("%q", got)
		}
	}
	if err := Between(path, "y", "new"); err == nil {
		t.Error("a file without the markers was taken")
	}
	write(end + " " + begin)
	if err := Between(path, "x", "new"); err == nil {
		t.Error("a file without the markers in their order was taken")
	}
}

func TestRounds(t *testing.T) {
	ours, theirs := Rounds[int]{0: 2, 1: 40, 2: 600}, Rounds[int]{1: 10, 2: 200, 3: 5}
	metric := func(n int) float64 { return float64(n) }
	if got, ok := ours.Median(metric); got != 40 || !ok {
		t.Errorf("median: %v, %t", got, ok)
	}
	if got, ok := ours.Ratio(theirs, metric); got != 3.5 || !ok {
		t.Errorf("ratio: %v, %t", got, ok)
	}
	if got, ok := ours.Ratio(Rounds[int]{0: 0, 7: 1}, metric); ok {
		t.Errorf("ratio without a common round: %v", got)
	}
}
