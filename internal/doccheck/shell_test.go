package doccheck

import (
	"reflect"
	"testing"
)

func TestCalls(t *testing.T) {
	for _, row := range []struct {
		line string
		want [][]string
	}{
		{"flaked get 3 | bin/flaked decode -o json", [][]string{{"get", "3"}, {"decode", "-o", "json"}}},
		{"flaked status", [][]string{{"status"}}},
		{"flaked gen 5 --at 2026-01-01 >file.txt; flaked version", [][]string{{"gen", "5", "--at", "2026-01-01"}, {"version"}}},
		{"flaked serve --zk a \\\n  --listen b &", [][]string{{"serve", "--zk", "a", "--listen", "b"}}},
		{"flaked workers release 7 --confirm 'release worker 7 of x'", [][]string{{"workers", "release", "7", "--confirm", "release worker 7 of x"}}},
		{"runuser -u flaked -- flaked doctor", [][]string{{"doctor"}}},
		{"taskset -c 0 bin/flaked bench --pid $(pidof flaked)", [][]string{{"bench", "--pid", "$(pidof flaked)"}}},
		{"FLAKED_ZK=a flaked get", [][]string{{"get"}}},
		{"for n in 1 2; do bin/flaked get --addr 127.0.0.1:771$n; done | flaked decode", [][]string{{"get", "--addr", "127.0.0.1:771$n"}, {"decode"}}},
		{"flaked serve --dev >log 2>&1 & echo $! >pid", [][]string{{"serve", "--dev"}}},
		{"until flaked healthcheck; do sleep 1; done", [][]string{{"healthcheck"}}},
		{"docker build -t flaked .", nil},
		{"systemctl enable flaked && flaked healthcheck", [][]string{{"healthcheck"}}},
	} {
		if got := (Command{Text: row.line}).Calls("flaked"); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%q: %q, want %q", row.line, got, row.want)
		}
	}
}
