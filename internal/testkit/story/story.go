// Package story prints a history as text: what nodes, clients and ZooKeeper do, one thing a line. A reviewer reads it
// without Go, and a change of what the product does shows as a difference of the text.
//
// A Story says only what is new. Of a record in ZooKeeper it prints the fields that differ from what it printed of that
// record before. A step that goes as the same step went before is counted, and not printed again. Times are seconds
// since the beginning of the history.
package story

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the histories of testdata anew")

// Story is one history.
type Story struct {
	// Begin is the time of the beginning, and Now returns the present one, Unix ms.
	Begin int64
	Now   func() int64
	// Hidden are the fields of records that say nothing here, and Shown the values of steps of the protocol that do.
	Hidden, Shown []string
	// Drawn are the names of values that somebody draws at random. They are numbered in the order in which they appear.
	Drawn []string

	text  strings.Builder
	said  map[string]map[string]string // of a record, by its path: what was printed
	drawn []string
	steps []*step
	last  line // that was printed

	skips  bool // nothing is printed
	inStep bool // lines are not printed, but added to step
	step   []line
}

// step is a thing that an actor does again and again.
type step struct {
	who, what string
	printed   []string // without their numbers, the latest last
	times     int      // since the last line
}

// line is an action of somebody at a time. looks: he only looks at a record.
type line struct {
	at, who, text string
	looks         bool
}

// Say prints what somebody does now.
func (s *Story) Say(who, format string, args ...any) { s.say(false, who, format, args...) }

// Skip calls f, and prints nothing of what is said meanwhile.
func (s *Story) Skip(f func()) {
	s.skips = true
	f()
	s.skips, s.steps = false, nil
}

func (s *Story) say(looks bool, who, format string, args ...any) {
	l := line{fmt.Sprintf("%8.3f", float64(s.Now()-s.Begin)/1000), who, fmt.Sprintf(format, args...), looks}
	if s.inStep {
		s.step = append(s.step, l)
		return
	}
	s.print(l)
}

// Title prints what comes next, in a few words.
func (s *Story) Title(format string, args ...any) {
	s.flush()
	s.last = line{}
	fmt.Fprintf(&s.text, "\n# "+format+"\n", args...)
}

var numbers = regexp.MustCompile(`[+-]?[0-9][0-9.]*`)

// Step calls f, which makes somebody do something that he does again and again. It is counted if it went as one of the
// last that were printed, of so many. What somebody looks at makes no difference if he does something else as well.
func (s *Story) Step(who, what string, of int, f func()) {
	if s.inStep { // inside of another one
		f()
		return
	}
	s.inStep, s.step = true, nil
	f()
	s.inStep = false
	i := slices.IndexFunc(s.steps, func(t *step) bool { return t.who == who && t.what == what })
	if i < 0 {
		i = len(s.steps)
		s.steps = append(s.steps, &step{who: who, what: what})
	}
	t, form := s.steps[i], s.form()
	switch {
	case form == "":
	case slices.Contains(t.printed, form):
		t.times++
	default:
		s.print(s.step...)
		t.printed = append(t.printed[max(0, len(t.printed)+1-of):], form)
	}
}

// form returns what was said in the step, without the numbers.
func (s *Story) form() string {
	var does, looks string
	for _, l := range s.step {
		if l.looks {
			looks += l.text + "\n"
		} else {
			does += l.text + "\n"
		}
	}
	return numbers.ReplaceAllString(cmp.Or(does, looks), "0")
}

// print prints lines. It leaves out a time and a name that are those of the line before.
func (s *Story) print(lines ...line) {
	if s.skips {
		return
	}
	s.flush()
	for _, l := range lines {
		at, who := l.at, l.who
		if s.last.who == who && s.last.at == at {
			at, who = "", ""
		}
		fmt.Fprintf(&s.text, "%8s  %-9s %s\n", at, who, l.text)
		s.last = l
	}
}

// flush prints how often steps went as before.
func (s *Story) flush() {
	var all []string
	for _, t := range s.steps {
		if t.times > 0 {
			all = append(all, fmt.Sprintf("%s %s x%d", t.who, t.what, t.times))
			t.times = 0
		}
	}
	if len(all) > 0 {
		s.last = line{}
		fmt.Fprintf(&s.text, "              ... as before: %s\n", strings.Join(all, ", "))
	}
}

const legend = "In each line: seconds, who, what. A * is a step of the protocol. v1 is a version of a record, and {} what is new in it.\n"

// Check compares the history with a file of testdata. With -update it writes the file.
func (s *Story) Check(t *testing.T, file, about string) {
	t.Helper()
	s.flush()
	got := about + "\n" + legend + s.text.String()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(data); got != want {
		t.Errorf("%s: the history is another one. If that is meant, write it anew with -args -update.\n%s", file,
			difference(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}

// difference returns where two texts begin to differ.
func difference(want, got []string) string {
	n := 0
	for n < min(len(want), len(got)) && want[n] == got[n] {
		n++
	}
	var b strings.Builder
	for _, part := range []struct {
		sign  string
		lines []string
	}{{"  ", want[max(0, n-3):n]}, {"- ", want[n:min(len(want), n+6)]}, {"+ ", got[n:min(len(got), n+6)]}} {
		for _, line := range part.lines {
			fmt.Fprintf(&b, "%s%s\n", part.sign, line)
		}
	}
	return fmt.Sprintf("line %d:\n%s", n+1, &b)
}

// Trace returns a function that prints the steps of the protocol that somebody takes.
func (s *Story) Trace(who string) func(step string, about ...any) {
	return func(step string, about ...any) {
		text := "* " + step
		for i := 0; i+1 < len(about); i += 2 {
			name := fmt.Sprint(about[i])
			value := s.value(name, about[i+1])
			if slices.Contains(s.Shown, name) && !unset(value) {
				text += " " + name + "=" + value
			}
		}
		s.Say(who, "%s", text)
	}
}

// value returns a value as a word. Times near the history become seconds since its beginning.
func (s *Story) value(name string, v any) string {
	if text := fmt.Sprint(v); text != "" && slices.Contains(s.Drawn, name) {
		if !slices.Contains(s.drawn, text) {
			s.drawn = append(s.drawn, text)
		}
		return fmt.Sprint("#", slices.Index(s.drawn, text)+1)
	}
	return times.ReplaceAllStringFunc(fmt.Sprint(v), func(text string) string {
		n, _ := strconv.ParseInt(text, 10, 64)
		if near := int64(30 * 24 * time.Hour / time.Millisecond); n < s.Begin-near || n > s.Begin+near {
			return text
		}
		return fmt.Sprintf("%+.3f", float64(n-s.Begin)/1000)
	})
}

// times matches what may be a time, Unix ms.
var times = regexp.MustCompile(`\b[0-9]{13}\b`)

func unset(value string) bool { return value == "" || value == "0" || value == "false" }

// record returns what is new about a record. Nil data: it is missing.
func (s *Story) record(path, version string, data []byte) string {
	if s.said == nil {
		s.said = map[string]map[string]string{}
	}
	was := s.said[path]
	if s.said[path] = nil; data == nil {
		return path + " (none)"
	}
	is := map[string]string{}
	var news []string
	s.fields("", data, func(name, value string) {
		is[name] = value
		old, known := was[name]
		if old != value && !slices.Contains(s.Hidden, name) && (known || !unset(value)) {
			news = append(news, name+"="+value)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, still := is[name]; !still && !slices.Contains(s.Hidden, name) {
			news = append(news, "no "+name)
		}
	}
	s.said[path] = is
	if len(news) == 0 {
		return path + version
	}
	return path + version + " {" + strings.Join(news, " ") + "}"
}

// list joins texts about records. Records of one directory about which there is the same to say become one text.
func list(texts []string) string {
	var joined []string
	for i := 0; i < len(texts); {
		n := i + 1
		for n < len(texts) && like(texts[n]) == like(texts[i]) {
			n++
		}
		text := texts[i]
		if n > i+1 {
			text = number.ReplaceAllString(text, "$1$2 to "+number.FindStringSubmatch(texts[n-1])[2])
		}
		joined = append(joined, text)
		i = n
	}
	return strings.Join(joined, ", ")
}

// number matches a record that is named by a number, in a text about it.
var number = regexp.MustCompile(`^([a-z ]*/[a-z]+/)([0-9]+)`)

// like returns a text about a record without the number of the record.
func like(text string) string { return number.ReplaceAllString(text, "$1") }

// fields calls f for each field of a JSON object, in their order. It looks into objects. Other data are one field.
func (s *Story) fields(prefix string, data []byte, f func(name, value string)) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		if len(data) > 0 {
			f(prefix+"data", s.value("data", string(data)))
		}
		return
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return
		}
		var text string
		switch {
		case raw[0] == '{':
			s.fields(prefix+fmt.Sprint(name)+".", raw, f)
			continue
		case json.Unmarshal(raw, &text) == nil:
		default:
			text = string(raw)
		}
		f(prefix+fmt.Sprint(name), s.value(fmt.Sprint(name), text))
	}
}
