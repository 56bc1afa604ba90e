package clients

import (
	"crypto/tls"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/harness"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// slack is added to all upper limits of time, for loaded machines.
const slack = time.Second

// TestCases runs the cases of clients/cases.jsonl against each driver.
func TestCases(t *testing.T) {
	cases := readCases(t, filepath.Join(root, "clients", "cases.jsonl"))
	good, other := certtest.NewCA(t, "good"), certtest.NewCA(t, "other")
	w := world{
		cert: &tls.Config{Certificates: []tls.Certificate{good.Pair("node", time.Now().Add(time.Hour)).TLS(t)}},
		ca: map[string]string{
			"good":  certtest.Write(t, t.TempDir(), "good.pem", good.PEM),
			"other": certtest.Write(t, t.TempDir(), "other.pem", other.PEM),
		},
	}
	for name, command := range drivers {
		t.Run(name, func(t *testing.T) {
			w := w
			w.driver = startDriver(t, name, command)
			t.Run("all", func(t *testing.T) { // ends before the driver does
				for i, c := range cases {
					if c.Skip[name] != "" {
						continue
					}
					t.Run(c.Name, func(t *testing.T) {
						t.Parallel()
						w.play(t, c, fmt.Sprintf("c%d", i))
					})
				}
			})
		})
	}
}

// world has what all cases use in common.
type world struct {
	driver *driver
	cert   *tls.Config       // of nodes with TLS
	ca     map[string]string // files of authorities by name
}

// scene is a case that runs.
type scene struct {
	world
	t       *testing.T
	c       testCase
	client  string
	nodes   map[string]*fake
	addrs   []string
	timeout time.Duration // of calls without one

	mu     sync.Mutex // guards served
	served []string   // values of nodes, which must all differ
}

func (w world) play(t *testing.T, c testCase, client string) {
	s := &scene{world: w, t: t, c: c, client: client, nodes: map[string]*fake{}}
	for i, spec := range c.Nodes {
		n := newFake(t, i, spec, w.cert)
		s.nodes[n.letter] = n
		s.addrs = append(s.addrs, n.addr)
	}
	for i, options := range c.WrongOptions {
		a := s.open(fmt.Sprintf("%s-%d", client, i), options)
		if a.Error == nil || a.Error.Kind != "argument" {
			t.Errorf("open with %v: %v, want an error of kind argument", options, a.Error)
		}
	}
	if len(c.Do) == 0 {
		return
	}
	if a := s.open(client, c.Options); a.Error != nil {
		t.Fatalf("open: %v", a.Error)
	}
	for i, do := range c.Do {
		s.act(fmt.Sprintf("step %d", i+1), do)
	}
	// Some cases have closed it before.
	if a, err := w.driver.call(map[string]any{"op": "close", "client": client}, 0); err != nil || a.Error != nil {
		t.Errorf("close: %v, %v", err, a.Error)
	}
	s.count()
}

// open opens a client with options of the case.
func (s *scene) open(client string, given map[string]any) answer {
	options := map[string]any{"addresses": s.addrs, "node_timeout_ms": 1000.0, "timeout_ms": 20_000.0}
	maps.Copy(options, given)
	if ca, ok := options["tls_ca"].(string); ok {
		options["tls_ca"] = s.ca[ca]
	}
	s.timeout = ms(int(options["timeout_ms"].(float64)))
	a, err := s.driver.call(map[string]any{"op": "open", "client": client, "options": options}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// act does a step of the case.
func (s *scene) act(step string, do action) {
	switch {
	case do.PauseMs > 0:
		harness.Pass(s.t.Context(), ms(do.PauseMs))
	case do.Stop != "":
		s.nodes[do.Stop].stop()
	case do.Start != "":
		s.nodes[do.Start].start()
	case len(do.Together) > 0:
		var wg sync.WaitGroup
		for i, one := range do.Together {
			for range max(one.Times, 1) {
				wg.Go(func() { s.call(fmt.Sprintf("%s, call %d", step, i+1), one) })
			}
		}
		wg.Wait()
	default:
		for range max(do.Times, 1) {
			s.call(step, do)
		}
	}
}

// call makes a call and checks what it gives.
func (s *scene) call(step string, do action) {
	for letter, n := range do.Once {
		if !zktest.Poll(patience, func() bool { return s.nodes[letter].requests() >= n }) {
			s.t.Errorf("%s: node %s has had no %d requests after %s", step, letter, n, patience)
			return
		}
	}
	command := map[string]any{"op": do.Op, "client": s.client}
	if do.N != nil {
		command["n"] = *do.N
	}
	if do.Name != "" {
		command["name"] = do.Name
	}
	if do.Key != "" {
		command["key"] = do.Key
	}
	limit := s.timeout
	if do.TimeoutMs > 0 {
		command["timeout_ms"], limit = do.TimeoutMs, ms(do.TimeoutMs)
	}
	if do.Want.MaxMs > 0 {
		limit = ms(do.Want.MaxMs)
	}
	began := time.Now()
	a, err := s.driver.call(command, limit)
	took := time.Since(began)
	if err != nil {
		s.t.Errorf("%s: %v", step, err)
		return
	}
	if took > limit+slack || took < ms(do.Want.MinMs) {
		s.t.Errorf("%s: took %s, want %s to %s", step, took, ms(do.Want.MinMs), limit)
	}
	for _, wrong := range s.judge(do, a) {
		s.t.Errorf("%s: %s: %v, error %v: %s", step, do.Op, a.Values, a.Error, wrong)
	}
}

// count checks how often the nodes were asked.
func (s *scene) count() {
	for _, n := range s.nodes {
		n.mu.Lock()
		counts := []struct {
			what string
			want map[string]limits
			got  int
		}{{"requests", s.c.Asked, n.asked}, {"connections", s.c.Connections, n.connections}, {"probes", s.c.Probed, n.probed}}
		n.mu.Unlock()
		for _, c := range counts {
			if l, ok := c.want[n.letter]; ok && (c.got < l.least || c.got > l.most) {
				s.t.Errorf("node %s had %d %s, want %d to %d", n.letter, c.got, c.what, l.least, l.most)
			}
		}
	}
}

// judge returns what is wrong with the answer to a call.
func (s *scene) judge(do action, a answer) (wrong []string) {
	if do.Want.Error != nil {
		return judgeError(*do.Want.Error, a.Error)
	}
	if a.Error != nil {
		return []string{"want no error"}
	}
	if do.Want.Values != nil && !slices.Equal(do.Want.Values, a.Values) {
		wrong = append(wrong, fmt.Sprintf("want %v", do.Want.Values))
	}
	if do.Want.From == "" {
		return wrong
	}
	n := 1
	switch {
	case do.Op == "seq_range":
		n = 2
	case do.N != nil:
		n = *do.N
	}
	if len(a.Values) != n {
		wrong = append(wrong, fmt.Sprintf("want %d values", n))
	}
	return append(wrong, s.judgeOrigin(do, a.Values)...)
}

// judgeOrigin checks that the values come from one of the nodes of the case, and that none was given before.
func (s *scene) judgeOrigin(do action, values []string) (wrong []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) < len(do.Want.Least) || v < do.Want.Least {
			wrong = append(wrong, fmt.Sprintf("%s is below %s", v, do.Want.Least))
		}
		from := ""
		for letter, n := range s.nodes {
			if len(v) == len(fmt.Sprint(spacing)) && v[0] == letter[0]-'a'+'1' {
				from = n.letter
			}
		}
		if from == "" || !strings.Contains(do.Want.From, from) {
			wrong = append(wrong, fmt.Sprintf("%s is of node %q, want one of %q", v, from, do.Want.From))
		}
		if do.Op != "seq_key" && slices.Contains(s.served, v) && !(do.Op == "seq_range" && *do.N == 1) {
			wrong = append(wrong, v+" was given before")
		}
		s.served = append(s.served, v)
	}
	return wrong
}

// judgeError compares the fields of an error that a case names.
func judgeError(want wrongdoing, got *wrongdoing) (wrong []string) {
	if got == nil {
		return []string{fmt.Sprintf("want an error: %s", &want)}
	}
	for _, f := range []struct{ name, want, got string }{
		{"kind", want.Kind, got.Kind}, {"code", want.Code, got.Code}, {"reason", want.Reason, got.Reason},
		{"retry_after_ms", fmt.Sprint(want.RetryAfterMs), fmt.Sprint(got.RetryAfterMs)},
	} {
		if f.want != f.got && f.want != "" && f.want != "0" {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", f.name, f.got, f.want))
		}
	}
	if !strings.Contains(got.Text, want.Text) || got.Text == "" {
		wrong = append(wrong, fmt.Sprintf("the text must contain %q", want.Text))
	}
	return wrong
}
