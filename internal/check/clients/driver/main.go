// Command driver calls package client for the tests in internal/check/clients.
//
// Each client has such a driver among its tests. A driver reads JSON lines on stdin, writes JSON lines to stdout in any
// order and nothing else, and ends when stdin ends. Commands run concurrently: a call that waits must not hold up the
// next command.
//
//	{"id":1,"op":"open","client":"a","options":{"addresses":["127.0.0.1:4001","unix:/tmp/x"],"cluster":"prod",
//	    "token":"t","tls_ca":"/path/ca.pem","node_timeout_ms":1000,"timeout_ms":5000,"prefetch":0,"max_age_ms":1000}}
//	{"id":2,"op":"next","client":"a","timeout_ms":400}
//	{"id":3,"op":"take","client":"a","n":7}
//	{"id":4,"op":"seq_next","client":"a","name":"order"}
//	{"id":5,"op":"seq_next","client":"a","name":"order","n":3}
//	{"id":6,"op":"seq_range","client":"a","name":"order","n":10}
//	{"id":7,"op":"seq_key","client":"a","name":"order","key":"k1"}
//	{"id":8,"op":"close","client":"a"}
//
// Every call takes timeout_ms. All options but addresses may be missing. prefetch and max_age_ms are for IDs, and for
// single values of each sequence. The answer to a call is {"id":3,"values":["1","2"]}, always strings; to seq_range it
// has the first and the last value; to open and close it is {"id":1}. An error has these fields, the middle three only
// if the client's error has them, and any other kind if it is none of the kinds refused, unavailable, closed, argument:
//
//	{"id":2,"error":{"kind":"unavailable","code":"NOTREADY","reason":"no-block","retry_after_ms":20,"text":"why"}}
//
// A load makes calls until it is stopped. Each caller makes the calls in turn, and pauses after each. In a key, *
// becomes a number that no other call of the load uses:
//
//	{"id":9,"op":"load","client":"a","callers":8,"pause_ms":2,"timeout_ms":2000,"calls":[{"op":"next"},
//	    {"op":"seq_key","name":"strict","key":"java-*"}]}
//	{"id":10,"op":"stop","load":9}
//
// {"id":9} is answered when the load has begun, {"id":10} after its last line. Each call of a load writes a line:
//
//	{"load":9,"op":"seq_next","name":"order","took_ms":3.2,"values":["17"]}
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
)

// command is a line of stdin.
type command struct {
	ID        int     `json:"id"`
	Client    string  `json:"client"`
	Options   options `json:"options"`
	Load      int     `json:"load"`
	Callers   int     `json:"callers"`
	PauseMs   int     `json:"pause_ms"`
	Calls     []call  `json:"calls"`
	TimeoutMs int     `json:"timeout_ms"`
	call
}

type options struct {
	Addresses     []string `json:"addresses"`
	Cluster       string   `json:"cluster"`
	Token         string   `json:"token"`
	TLSCA         string   `json:"tls_ca"`
	NodeTimeoutMs int      `json:"node_timeout_ms"`
	TimeoutMs     int      `json:"timeout_ms"`
	Prefetch      int      `json:"prefetch"`
	MaxAgeMs      int      `json:"max_age_ms"`
}

// answer is a line of stdout.
type answer struct {
	ID     int      `json:"id,omitempty"`
	Load   int      `json:"load,omitempty"`
	Op     string   `json:"op,omitempty"`
	Name   string   `json:"name,omitempty"`
	TookMs float64  `json:"took_ms,omitempty"`
	Values []string `json:"values,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// driver has the clients and loads by their names.
type driver struct {
	mu      sync.Mutex // guards all
	out     *json.Encoder
	clients map[string]*opened
	loads   map[int]*load
}

func main() {
	d := &driver{out: json.NewEncoder(os.Stdout), clients: map[string]*opened{}, loads: map[int]*load{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", in.Text(), err)
			os.Exit(2)
		}
		if c.Op == "open" { // the next command may use the client
			d.say(d.do(c))
			continue
		}
		go func() { d.say(d.do(c)) }()
	}
}

func (d *driver) say(a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.out.Encode(a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// do executes a command and returns its answer.
func (d *driver) do(c command) answer {
	d.mu.Lock()
	source, l := d.clients[c.Client], d.loads[c.Load]
	d.mu.Unlock()
	a := answer{ID: c.ID}
	switch c.Op {
	case "open":
		a.Error = failed(d.open(c.Client, c.Options))
	case "close":
		source.client.Close()
	case "load":
		l = &load{quit: make(chan struct{})}
		d.mu.Lock()
		d.loads[c.ID] = l
		d.mu.Unlock()
		l.start(d, source, c)
	case "stop":
		l.stop()
	default:
		values, err := source.call(c.call, time.Duration(c.TimeoutMs)*time.Millisecond)
		a.Values, a.Error = values, failed(err)
	}
	return a
}

func (d *driver) open(name string, o options) error {
	ms := time.Millisecond
	cfg := client.Config{
		Addrs: o.Addresses, Cluster: o.Cluster, Token: o.Token, Timeout: time.Duration(o.NodeTimeoutMs) * ms,
		Patience: time.Duration(o.TimeoutMs) * ms, Prefetch: o.Prefetch, MaxAge: time.Duration(o.MaxAgeMs) * ms,
	}
	if o.TLSCA != "" {
		text, err := os.ReadFile(o.TLSCA)
		if err != nil {
			return err
		}
		cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		cfg.TLS.RootCAs.AppendCertsFromPEM(text)
	}
	source, err := client.New(cfg)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[name] = &opened{client: source, prefetch: cfg, sequences: map[string]ids.Sequence{}}
	return nil
}

// load is callers that make calls until the load is stopped.
type load struct {
	quit chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex // guards keys
	keys int
}

func (l *load) start(d *driver, source *opened, c command) {
	for range c.Callers {
		l.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.quit:
					return
				case <-time.After(time.Duration(c.PauseMs) * time.Millisecond):
				}
				one := c.Calls[i%len(c.Calls)]
				one.Key = l.key(one.Key)
				began := time.Now()
				values, err := source.call(one, time.Duration(c.TimeoutMs)*time.Millisecond)
				took := time.Since(began)
				d.say(answer{Load: c.ID, Op: one.Op, Name: one.Name, TookMs: float64(took.Microseconds()) / 1000,
					Values: values, Error: failed(err)})
			}
		})
	}
}

func (l *load) stop() {
	close(l.quit)
	l.wg.Wait()
}

// key replaces * by a number that no other call has.
func (l *load) key(pattern string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys++
	return strings.Replace(pattern, "*", fmt.Sprint(l.keys), 1)
}

// within returns a context that ends after a time, unless that is 0.
func within(limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), limit)
}
