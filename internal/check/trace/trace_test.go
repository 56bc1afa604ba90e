package trace

import (
	_ "embed"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// good has the traces of two nodes that obey all rules. A line has a label, the file, and the step with the boot clock
// in ms, which is also the time in Unix ms. "m" after a number stands for a million.
//
//go:embed testdata/good.txt
var good string

var million = regexp.MustCompile(`=(\d+)m\b`)

// judged returns the verdict on good after the changes "label word=value ...", "label -" (the line is missing) and
// "label word=value file=x".
func judged(t *testing.T, changes ...string) *Verdict {
	t.Helper()
	files := map[string]string{}
	for text := range strings.Lines(good) {
		words := strings.Fields(text)
		label, file, words := words[0], words[1], words[2:]
		for _, c := range changes {
			change := strings.Fields(c)
			if change[0] != label {
				continue
			}
			for _, w := range change[1:] {
				key, _, _ := strings.Cut(w, "=")
				at := slices.IndexFunc(words, func(have string) bool { return strings.HasPrefix(have, key+"=") })
				switch {
				case w == "-":
					words = nil
				case key == "file":
					file = strings.TrimPrefix(w, "file=")
				case at < 0 && key == "copied":
					words = append(words, w)
				case at < 0:
					t.Fatalf("%s has no %s", label, key)
				default:
					words[at] = w
				}
			}
		}
		if words != nil {
			files[file] += million.ReplaceAllString(strings.Join(words, " "), "=${1}000000") + "\n"
		}
	}
	traces := map[string]io.Reader{}
	for name, text := range files {
		traces[name] = strings.NewReader(text)
	}
	v, err := Judge(traces, campaign)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGoodTraceObeysAllRules(t *testing.T) {
	v := judged(t)
	for _, wrong := range v.Violations {
		t.Error(wrong)
	}
	if v.Steps["beat"] != 5 || v.Rules["C26"] != 2 || !strings.Contains(v.String(), "put-back:0") {
		t.Error(v)
	}
}

// brokenRules: each change breaks the rule, and perhaps others with it.
var brokenRules = []struct{ rule, change string }{
	{"step", "a0 -"}, {"step", "j1 step=unheard-of"}, {"words", "a4 sent=soon"}, {"stage", "a2 -"}, {"stage", "s2 -"},
	{"C1", "x1 end=5001"}, {"C1", "x1 -; s0 run=z; s1 -; s2 -; s3 -; s4 run=a1"}, {"C1", "a3 -"},
	{"C2", "b2 found_lease=3101"}, {"C2", "a7 now=9"}, {"C2", "d2 floor=6999"},
	{"C2", "b2 worker=0; b3 worker=0 floor=4000; b7 worker=0"},
	{"C3", "b2 lease=-9001"}, {"C3", "a8 lease=62089"}, {"C3", "r1 lease=63299"}, {"C3", "s2 lease=70009"},
	{"C4", "a6 limit=62091"}, {"C4", "d1 own_lease=64201"}, {"C4", "s2 own_lease=70011"},
	{"C5", "a6 limit=5001"}, {"C5", "r0 reserved=4999"},
	{"C6", "s2 floor=4499"}, {"C6", "d1 floor=6999"},
	{"C7", "b2 leader=-4001"}, {"C7", "b2 now=-4001"}, {"C7", "b2 found_lease=-1899"}, {"C7", "a2 found_lease=10011"},
	{"C9", "a2 nonce=n9"}, {"C9", "s2 nonce=n9"}, {"C9", "a5 -"},
	{"C10", "b5 sent=5101m"}, {"C10", "a8 confirmed=true; a4 -"}, {"C10", "a7 now=62090"}, {"C10", "a4 confirmed=false"},
	{"C13", "a8 version=5"}, {"C15", "s2 found_nonce=m1"},
	{"C16", "d1 now=64200"}, {"C16", "d1 ever=false"}, {"C18", "d0 file=a; d1 file=a"},
	{"C19", "a8 found_nonce=m1"}, {"C19", "d3 -"},
	{"C20", "l1 inc=0"}, {"C21", "l1 frozen=0"}, {"C21", "l1 frozen=63299"}, {"C21", "l1 frozen=79999"}, {"C21", "a2 frozen=11"},
	{"C21", "b5 frozen=5201"},
	{"C21", "b0 boot=9m; l1 boot=10m inc=0 known=-1 frozen=3101"},
	{"C24", "r1 own_lease=10010"}, {"C24", "r1 ever=false"},
	{"C26", "a8 now=62090"}, {"C26", "s0 run=a9; s1 run=a1; s2 -; s4 run=a1 floor=4499"},
	{"C29", "s5 -"}, {"C29", "s7 lease=4499"}, {"C29", "s6 -"},
	{"S1", "w1 positions=31"}, {"S2", "w1 was_next=1"}, {"S2", "k1 nonce=w2"}, {"S2", "k4 first=9; w4 first=9"},
	{"S4", "g1 was_next=242"},
	{"S6", "w1 was_credit=31 credit=-1"}, {"S6", "w1 credit=69"}, {"S9", "w3 boot=12020m"}, {"S9", "w3 inc=2"},
	{"S10", "w3 slot=40"}, {"S11", "w1 wait_ms=1"},
	{"S13", "w3 first=228"}, {"S13", "w3 inc=2 peak_from=200"},
	{"S13", "k3 first=31 end=43; w3 first=31 end=43 next=43"},
	{"S14", "w3 end=242 next=242"}, {"S14", "w3 credit=0"}, {"S15", "w3 positions=2001"},
	{"S30", "j1 bound=5"}, {"S31", "s3 blocks=4-33"}, {"S31", "s3 blocks=4-32,229-242"},
	{"O2", "o1 until=5706m"}, {"O4", "o3 boot=6699m; k4 boot=6698m; w4 boot=6697m"}, {"O4", "w4 since=3901m"},
	{"O4", "w2 inc=1"},
	{"O5", "o2 now=5705m"},
}

func TestEachRuleIsNoticedWhenItIsBroken(t *testing.T) {
	covered := map[string]bool{}
	for _, b := range brokenRules {
		covered[b.rule] = true
		v := judged(t, strings.Split(b.change, "; ")...)
		if !slices.ContainsFunc(v.Violations, func(w Violation) bool { return w.Rule == b.rule && w.Line.Text != "" }) {
			t.Errorf("%s is broken by %q: found %v", b.rule, b.change, v.Violations)
		}
	}
	for rule := range judged(t).Rules {
		if !covered[rule] {
			t.Errorf("no trace breaks %s", rule)
		}
	}
}

// Limit 2 of safety.md: a process begins in an old state that was put back in place.
func TestOldStateThatWasPutBack(t *testing.T) {
	noBeats := []string{"r1 -", "e2 -", "w3 -", "k3 -", "g1 -", "s3 -", "s2 floor=4000 own_lease=63300",
		"s4 floor=4500"}
	for name, row := range map[string]struct {
		change  []string
		putBack string
		want    bool
	}{
		"alone": {[]string{"d1 floor=6000", "d2 floor=6000", "d3 end=6000"},
			"o4 step=put-back copied=4000m", true},
		"ZooKeeper is asked":  {noBeats, "l1 step=put-back copied=9999m", true},
		"with two heartbeats": {noBeats, "l1 step=put-back copied=2100m", false},
	} {
		if len(judged(t, row.change...).Violations) == 0 {
			t.Errorf("%s: an old state is not noticed", name)
		}
		if v := judged(t, append(row.change, row.putBack)...); (len(v.Violations) == 0) != row.want {
			t.Errorf("%s: %v", name, v.Violations)
		}
	}
}

// Two processes start in the old state. The first saves it and ends, so the second does not begin in what was put back.
func TestSecondProcessInAnOldState(t *testing.T) {
	for _, row := range []struct {
		putBack string
		want    bool
	}{{"", false}, {"boot=60 run=- step=put-back copied=30", true}, {"boot=60 run=- step=put-back copied=50", false}} {
		v, err := Judge(map[string]io.Reader{"a": strings.NewReader(`boot=10 run=a1 step=start
boot=11 run=a1 step=saved node=A worker=0 nonce= pending=n1 reserved=10 ever=false stopped=false
boot=12 run=a1 step=acquired node=A worker=0 nonce=n1 inc=0 floor=10 own_lease=0 lease=60010 confirmed=true version=1 ` +
			`found_lease=0 found_free=true frozen=0 now=10 leader=10 sent=11
boot=13 run=a1 step=tenure worker=0 floor=10
boot=20 run=a1 step=saved node=A worker=0 nonce=n1 pending= reserved=5000 ever=true stopped=false
boot=21 run=a1 step=bound worker=0 limit=5000
boot=40 run=a1 step=saved node=A worker=0 nonce=n1 pending= reserved=6000 ever=true stopped=false
boot=41 run=a1 step=bound worker=0 limit=6000
` + row.putBack + `
boot=70 run=a2 step=start
boot=71 run=a2 step=saved node=A worker=0 nonce=n1 pending=n2 reserved=5000 ever=true stopped=false
boot=80 run=a3 step=start
boot=81 run=a3 step=saved node=A worker=0 nonce=n1 pending=n3 reserved=5000 ever=true stopped=false
boot=82 run=a3 step=resumed node=A worker=0 nonce=n3 inc=0 floor=5000 own_lease=60010 lease=60010 confirmed=true ` +
			`version=5 found_nonce=n1 found_lease=60010 frozen=0 now=5000 leader=5000 sent=82
boot=83 run=a3 step=tenure worker=0 floor=5000
boot=84 run=a3 step=saved node=A worker=0 nonce=n3 pending= reserved=8000 ever=true stopped=false
boot=85 run=a3 step=bound worker=0 limit=8000
`)}, campaign)
		if err != nil || v.Broken["C2"] == 0 != row.want {
			t.Errorf("%q: %v, %v", row.putBack, v.Violations, err)
		}
	}
}

// A node gave back 20 to 40 of its block. It took 20 to 25 again, and its next process resumed 22 to 25: 25 to 40 is
// still anybody's.
func TestWhatWasGivenBackIsHeldOnlyWhereItIsResumed(t *testing.T) {
	x := &at{w: &world{blocks: map[string][]*block{}}, process: &process{}}
	step := func(text string) {
		x.Line = parse("a", text)
		switch {
		case strings.Contains(text, "next="):
			x.write()
		case strings.Contains(text, "blocks="):
			x.resume()
		default:
			x.block()
		}
	}
	x.process.node, x.process.writes = newNode("a"), map[string]*Line{}
	step("boot=1 run=a1 step=block id=i inc=0 first=0 end=40")
	step("boot=2 run=a1 step=writes id=i inc=0 first=0 end=0 next=20 was_next=40 nonce=n owner= was_owner=")
	step("boot=3 run=a2 step=block id=i inc=0 first=20 end=25")
	step("boot=4 run=a3 step=resumes id=i blocks=22-25")
	for _, row := range []struct {
		first, end int64
		free       bool
	}{{0, 20, false}, {19, 20, false}, {24, 25, false}, {25, 40, true}, {25, 26, true}} {
		if free := x.unheld(row.first, row.end, nil); free != row.free {
			t.Errorf("%d to %d: free %v, want %v", row.first, row.end, free, row.free)
		}
	}
}
