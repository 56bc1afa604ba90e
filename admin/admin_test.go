package admin_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/admin"
)

// The page, the metrics and IDs on the HTTP server and in the registry of a program.
func Example() {
	node, err := flaked.Open(context.Background(), flaked.Config{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(context.Background())

	server, err := admin.New(admin.Config{Node: node})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); server.Run(ctx) }()
	defer func() { stop(); <-ended }()

	mux := http.NewServeMux()
	mux.Handle("/flaked/", http.StripPrefix("/flaked", server.Handler()))
	registry := prometheus.NewRegistry()
	registry.MustRegister(server.Collector())

	families, err := registry.Gather()
	fmt.Println(len(families) > 20, err)
	// Output: true <nil>
}

// Under a prefix and on another server, all links of the page lead to the handler, and IDs are
// given out.
func TestHandlerUnderAPrefix(t *testing.T) {
	node, err := flaked.Open(t.Context(), flaked.Config{InMemory: true, Name: "orders-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(context.Background())
	server, err := admin.New(admin.Config{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); server.Run(ctx) }()
	defer func() { stop(); <-ended }()
	mux := http.NewServeMux()
	mux.Handle("/flaked/", http.StripPrefix("/flaked", server.Handler()))
	web := httptest.NewServer(mux)
	defer web.Close()
	get := func(path string) (int, string) {
		t.Helper()
		res, err := web.Client().Get(web.URL + "/flaked/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	for path, want := range map[string]string{
		"": "<title>", "livez": "", "readyz": "", "metrics": "flaked_ready 1", "v1/status": `"ready":true`,
		"v1/ids": `{"ids":["`, "page.js": "location.pathname",
	} {
		if code, body := get(path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("/flaked/%s: %d %.200s", path, code, body)
		}
	}
	_, page := get("")
	if !strings.Contains(page, "<h1>orders-1") {
		t.Errorf("the heading lacks the node's name: %.2000s", page)
	}
	for _, absolute := range []string{`href="/`, `src="/`, `action="/`} {
		if strings.Contains(page, absolute) {
			t.Errorf("the page has a link that begins with %s", absolute)
		}
	}
}
