package words

import "testing"

func TestClean(t *testing.T) {
	if got := Clean("a\x1b[2Jb\nc\u202ed é世"); got != "a\ufffd[2Jb\ufffdc\ufffdd é世" {
		t.Errorf("%q", got)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWorkerNumbers(t *testing.T) {
	for want, workers := range map[string][]int{"worker 3": {3}, "workers 1-2": {1, 2}, "workers 0, 2-4, 7": {0, 2, 3, 4, 7}} {
		if got := WorkerNumbers(workers); got != want {
			t.Errorf("%v: %q, want %q", workers, got, want)
		}
	}
}
