// Command driver calls package client for the tests in internal/check/clients. clients/README.md has its protocol.
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
