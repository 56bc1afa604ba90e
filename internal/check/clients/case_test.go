package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// testCase is a line of cases.jsonl. clients/README.md describes the fields.
type testCase struct {
	Name         string            `json:"name"`
	Nodes        []nodeSpec        `json:"nodes"`
	Options      map[string]any    `json:"options"`
	WrongOptions []map[string]any  `json:"wrong_options"`
	Do           []action          `json:"do"`
	Asked        map[string]limits `json:"asked"`
	Connections  map[string]limits `json:"connections"`
	Probed       map[string]limits `json:"probed"`
	Skip         map[string]string `json:"skip"`
}

// nodeSpec says what a fake node does.
type nodeSpec struct {
	Script    []reply  `json:"script"`
	Seq       []reply  `json:"seq"`
	Ready     []string `json:"ready"`
	Unready   bool     `json:"unready"`
	Token     string   `json:"token"`
	Auth      string   `json:"auth"`
	Down      bool     `json:"down"`
	UpAfterMs int      `json:"up_after_ms"`
	Mute      bool     `json:"mute"`
	TLS       bool     `json:"tls"`
	On        string   `json:"on"`
	Cluster   string   `json:"cluster"` // its name, "prod" if it is empty
	Later     string   `json:"later"`   // the name from the second start on
}

// reply is a step of a script: what a node does at one request.
type reply struct {
	Reply   *string  `json:"reply"`
	AfterMs int      `json:"after_ms"`
	Cut     *cut     `json:"cut"`
	Hang    bool     `json:"hang"`
	Close   string   `json:"close"`
	Waiting int      `json:"waiting"`
	Raw     *string  `json:"raw"`
	Digits  int      `json:"digits"`
	Each    []string `json:"each"`
	Always  bool     `json:"always"`
}

// cut is a number of bytes. every stands for all numbers.
type cut int

const every cut = -1

func (c *cut) UnmarshalJSON(data []byte) error {
	if string(data) == `"every"` {
		*c = every
		return nil
	}
	return json.Unmarshal(data, (*int)(c))
}

func (r *reply) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		r.Reply = new(string)
		return json.Unmarshal(data, r.Reply)
	}
	type plain reply
	return strictly(data, (*plain)(r))
}

// limits are how often something may happen.
type limits struct{ least, most int }

func (l *limits) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		err := json.Unmarshal(data, &l.least)
		l.most = l.least
		return err
	}
	var both [2]int
	err := json.Unmarshal(data, &both)
	l.least, l.most = both[0], both[1]
	return err
}

// action is a step of a case: a call, or something that happens to a node.
type action struct {
	Op        string         `json:"op"`
	N         *int           `json:"n"`
	Name      string         `json:"name"`
	Key       string         `json:"key"`
	TimeoutMs int            `json:"timeout_ms"`
	Want      want           `json:"want"`
	Once      map[string]int `json:"once"`
	Times     int            `json:"times"`

	Together []action `json:"together"`
	PauseMs  int      `json:"pause_ms"`
	Stop     string   `json:"stop"`
	Start    string   `json:"start"`
}

// want is the expected result of a call.
type want struct {
	Values []string    `json:"values"`
	From   string      `json:"from"`
	Least  string      `json:"least"`
	Error  *wrongdoing `json:"error"`
	MinMs  int         `json:"min_ms"`
	MaxMs  int         `json:"max_ms"`
}

// wrongdoing is an error as a driver tells it. In a case, only the fields that are set count.
type wrongdoing struct {
	Kind         string `json:"kind"`
	Code         string `json:"code"`
	Reason       string `json:"reason"`
	RetryAfterMs int    `json:"retry_after_ms"`
	Text         string `json:"text"`
}

func (e *wrongdoing) String() string {
	return fmt.Sprintf("%s code=%s reason=%s retry_after_ms=%d: %s", e.Kind, e.Code, e.Reason, e.RetryAfterMs, e.Text)
}

func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// readCases returns the cases of a file. A case with a step of many kinds becomes a case for each.
func readCases(t *testing.T, path string) (all []testCase) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var c testCase
		if err := strictly(line, &c); err != nil {
			t.Fatalf("%s:%d: %v", path, i+1, err)
		}
		if names[c.Name] || c.Name == "" {
			t.Fatalf("%s:%d: the name %q is missing or not the only one", path, i+1, c.Name)
		}
		names[c.Name] = true
		all = append(all, c.expand()...)
	}
	return all
}

// expand returns the case, or one for each place where it cuts a reply, or one for each of its replies.
func (c testCase) expand() (all []testCase) {
	for i, n := range c.Nodes {
		for at, r := range n.Script {
			for _, v := range r.variants() {
				one := c
				one.Name = fmt.Sprintf("%s, %s", c.Name, v.name)
				one.Nodes = slices.Clone(c.Nodes)
				one.Nodes[i].Script = slices.Clone(n.Script)
				one.Nodes[i].Script[at] = v.reply
				all = append(all, one)
			}
			if all != nil {
				return all
			}
		}
	}
	return []testCase{c}
}

// variant is one of the replies that a step stands for.
type variant struct {
	reply
	name string
}

func (r reply) variants() (all []variant) {
	if r.Cut != nil && *r.Cut == every {
		for k := range len(*r.Reply) + 1 {
			one := r
			one.Cut = new(cut(k))
			all = append(all, variant{one, fmt.Sprintf("%d bytes", k)})
		}
	}
	for _, text := range r.Each {
		one := r
		one.Each, one.Reply = nil, &text
		all = append(all, variant{one, fmt.Sprintf("%q", text)})
	}
	return all
}
