package doccheck

import (
	"fmt"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       []Command
	}{
		{"no code", "Words, and `--flag`.\n", nil},
		{"an indented block", "Do\n\n    flaked get 3      # three\n    flaked get\n\nwords\n", []Command{{Line: 3, Text: "flaked get 3"}, {Line: 4, Text: "flaked get"}}},
		{"no blank line before it", "words\n    flaked get\n", nil},
		{"in a list", "2. Do\n\n       flaked get\n\n   and more.\n", []Command{{Line: 3, Text: "flaked get"}}},
		{"lines that go on", "\n    flaked serve --zk a \\\n      --listen b   # here\n", []Command{{Line: 2, Text: "flaked serve --zk a \\\n  --listen b"}}},
		{"a loop", "\n    for i in 1 2; do\n      flaked get\n    done\n    nc x 1\n", []Command{{Line: 2, Text: "for i in 1 2; do\n  flaked get\ndone"}, {Line: 5, Text: "nc x 1"}}},
		{"a loop in a line", "\n    for i in 1 2; do flaked get; done | sort\n    nc x 1\n", []Command{{Line: 2, Text: "for i in 1 2; do flaked get; done | sort"}, {Line: 3, Text: "nc x 1"}}},
		{"a fence", "```sh\nmake build\n```\n", []Command{{Line: 2, Text: "make build"}}},
		{"a fence of another language", "```go\ngo f()\n```\n", nil},
		{"a transcript", "\n    $ flaked get 2\n    1\n\n    2\n    $ flaked get\n", []Command{{Line: 2, Text: "flaked get 2", Output: "1\n\n2\n"}, {Line: 6, Text: "flaked get"}}},
		{"output after a blank line", "\n    flaked get\n\n    2123\n", []Command{{Line: 2, Text: "flaked get", Output: "2123\n"}}},
		{"a comment of its own", "\n    # say\n    flaked get\n", []Command{{Line: 3, Text: "flaked get"}}},
		{"a file", "\n    # /etc/flaked.yaml\n    zk: zk1\n    listen:\n      - a\n", nil},
		{"another file", "\n    zk: zk1\n", nil},
		{"output alone", "\n    WORKER  NAME\n         0  vm\n", nil},
		{"in a sentence", "Call `flaked status -o wide`, `flaked` or `make build`.\n",
			[]Command{{Line: 1, Text: "flaked status -o wide", Inline: true}, {Line: 1, Text: "make build", Inline: true}}},
		{"over the end of a line", "One.\n\nCall `flaked\nstatus -o wide`, and `x`.\n", []Command{{Line: 3, Text: "flaked status -o wide", Inline: true}}},
		{"a number sign that is none", "\n    curl http://h/#x\n", []Command{{Line: 2, Text: "curl http://h/#x"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Parse("", row.text)
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%+v, %v, want %+v", got, err, row.want)
			}
		})
	}
}

func TestUnknownCommandIsAnError(t *testing.T) {
	if got, err := Parse("x.md", "\n    frobnicate -rf /\n"); err == nil {
		t.Errorf("%+v", got)
	}
}

func TestCalls(t *testing.T) {
	for line, want := range map[string]string{
		"flaked get 3 | bin/flaked decode -o json":                `[["get" "3"] ["decode" "-o" "json"]]`,
		"flaked serve --zk a \\\n  --listen b &":                  `[["serve" "--zk" "a" "--listen" "b"]]`,
		"flaked workers release 7 --confirm 'release worker 7'":   `[["workers" "release" "7" "--confirm" "release worker 7"]]`,
		"runuser -u flaked -- flaked doctor":                      `[["doctor"]]`,
		"FLAKED_ZK=a flaked serve --dev >log 2>&1 & echo $! >pid": `[["serve" "--dev"]]`,
		"until flaked healthcheck; do sleep 1; done":              `[["healthcheck"]]`,
		"docker build -t flaked . && systemctl enable flaked":     `[]`,
	} {
		if got := fmt.Sprintf("%q", Command{Text: line}.Calls("flaked")); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
