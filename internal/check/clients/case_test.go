package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// testCase is a line of cases.jsonl. Lines that begin with #, and empty ones, are ignored.
type testCase struct {
	Name string `json:"name"`
	// Nodes are called a, b, c. Node a serves the numbers from 1000001 on, b those from 2000001, so a value shows its
	// node. They answer AUTH, WORKER, SEQ and PING by themselves, and READY with OK.
	Nodes []nodeSpec `json:"nodes"`
	// Options are those of the driver's open. Unless given, addresses are the nodes', node_timeout_ms is 1,000 and
	// timeout_ms 20,000. tls_ca is "good" or "other".
	Options      map[string]any    `json:"options"`
	WrongOptions []map[string]any  `json:"wrong_options"` // with each of these, open must fail with the kind argument
	Do           []action          `json:"do"`            // one after the other
	Asked        map[string]limits `json:"asked"`         // requests for IDs or values that a node has had at the end
	Connections  map[string]limits `json:"connections"`   // likewise, without those that only ask for the cluster
	Probed       map[string]limits `json:"probed"`        // likewise, how many READY
	Skip         map[string]string `json:"skip"`          // why a client of this name is left out
}

// nodeSpec says what a fake node does.
type nodeSpec struct {
	Script    []reply  `json:"script"`      // at successive requests for IDs or values. Then it serves
	Seq       []reply  `json:"seq"`         // the same for sequences. Script is then for IDs only
	Ready     []string `json:"ready"`       // replies to successive READY. Then OK
	Unready   bool     `json:"unready"`     // it answers every READY with -NOTREADY
	Token     string   `json:"token"`       // it wants this token
	Auth      string   `json:"auth"`        // "late": it answers AUTH only when another request has arrived
	Down      bool     `json:"down"`        // nobody listens, until an action starts it
	UpAfterMs int      `json:"up_after_ms"` // nobody listens before that time
	Mute      bool     `json:"mute"`        // connections are accepted, and nothing is ever read or answered
	TLS       bool     `json:"tls"`         // its certificate is for 127.0.0.1
	On        string   `json:"on"`          // "unix" or "ipv6". IPv4 if it is empty
	Cluster   string   `json:"cluster"`     // its name, "prod" if it is empty. The UUID is uuid-of- and the name
	Later     string   `json:"later"`       // the name from the second start on
}

// reply is a step of a script: what a node does at one request. A string alone is a Reply. A node without Reply serves.
type reply struct {
	Reply   *string  `json:"reply"`    // its text. LF is added
	AfterMs int      `json:"after_ms"` // how long before the reply
	Cut     *cut     `json:"cut"`      // the connection is closed after so many bytes of the reply
	Hang    bool     `json:"hang"`     // nothing is answered on this connection any more
	Close   string   `json:"close"`    // "before": without a reply, "after": after the reply
	Waiting int      `json:"waiting"`  // the reply comes when so many requests wait on this connection
	Raw     *string  `json:"raw"`      // bytes without LF
	Digits  int      `json:"digits"`   // so many digits without LF
	Each    []string `json:"each"`     // the case runs once for each of these replies
	Always  bool     `json:"always"`   // this step stays
}

// cut is a number of bytes. every stands for all numbers: the case runs once for each.
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
	Once      map[string]int `json:"once"`  // the call is sent when a node has had so many requests
	Times     int            `json:"times"` // so often

	Together []action `json:"together"` // are sent at once
	PauseMs  int      `json:"pause_ms"`
	Stop     string   `json:"stop"`  // resets the connections of this node, and refuses new ones
	Start    string   `json:"start"` // starts this node
}

// want is the expected result of a call.
type want struct {
	Values []string    `json:"values"`
	From   string      `json:"from"`  // letters of the nodes that the values may come from
	Least  string      `json:"least"` // no value may be below
	Error  *wrongdoing `json:"error"`
	MinMs  int         `json:"min_ms"`
	MaxMs  int         `json:"max_ms"` // the timeout of the call if it is 0. A second is added for loaded machines
}

// wrongdoing is an error as a driver tells it. In a case, only the fields that are set count, and the error's text must
// contain Text.
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
