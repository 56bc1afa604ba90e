package web

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

var (
	quoted   = regexp.MustCompile(`"[^"<>]*"`)
	ofOthers = regexp.MustCompile(`(?i)<script>|<img|<[^>]* (on[a-z]+|style)=`)
)

// foreign returns markup that the page's templates do not contain: scripts, images, event
// handlers and style attributes.
func foreign(page string) string { return ofOthers.FindString(quoted.ReplaceAllString(page, `""`)) }

// The page is complete without a script, and text that others wrote is escaped.
func TestPageWithoutScript(t *testing.T) {
	addr, _ := start(t, picture(32, 20))
	code, header, body := do(t, "GET", "http://"+addr+"/?id=2123840322550104099")
	if code != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" ||
		header.Get("Content-Security-Policy") != contentPolicy {
		t.Errorf("%d %v", code, header)
	}
	if found := foreign(body); found != "" {
		t.Errorf("%s", found)
	}
	for _, want := range []string{
		`<noscript><meta http-equiv="refresh" content="5"></noscript>`, "cluster orders", "Serving IDs",
		"worker 1 (ids-1) is disconnected", ">overdue<",
		"23h53m", "812ms ago", "14 live", "&lt;script&gt;", "-1h0m &#43;/- 0.5ms slow", "10.0.0.7:7609",
		"2026-11-20T18:06:06.598Z", "number 35 of its tick", "clock offset is large", "IDs end on 2080-07-10",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "cannot render") {
		t.Error(body)
	}
}

func TestPageRendersWithMissingData(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing is known": {},
		"all is wrong":     full(),
		"ZooKeeper is away": {
			Slots: func(context.Context) (view.Report, error) {
				return view.Report{}, errors.New("ZooKeeper <is> away")
			},
			Ready: func() error { return errors.New("-NOTREADY starting reason=no-worker-yet") },
			Node:  func() node.Snapshot { return node.Snapshot{} },
		},
		"a huge cluster": {Slots: func(context.Context) (view.Report, error) {
			s := view.Report{Summary: view.Summary{Slots: 1 << 22, Used: 3, Live: 3}}
			for _, w := range []int{0, 5000, 4_000_000} {
				s.Workers = append(s.Workers, view.WorkerReport{Worker: w, State: "live", ClockOffsetMs: new(1.0)})
			}
			return s, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := start(t, cfg)
			for _, path := range []string{"/", "/?id=x", "/?id=99999999999999999999"} {
				code, _, body := do(t, "GET", "http://"+addr+path)
				if code != 200 || strings.Contains(body, "cannot render") || !strings.Contains(body, "</html>") {
					t.Errorf("%s: %d %s", path, code, body)
				}
				if len(body) > 400_000 {
					t.Errorf("%s: %d bytes", path, len(body))
				}
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	ends := []float64{64e-6, 128e-6, 2}
	for _, row := range []struct {
		n      []int64
		q      float64
		wanted string
	}{
		{[]int64{0, 0, 0, 0}, 0.5, "–"},
		{[]int64{1, 0, 0, 0}, 0.99, "≤ 64 µs"},
		{[]int64{98, 2, 0, 0}, 0.99, "≤ 128 µs"},
		{[]int64{0, 0, 1, 0}, 0.5, "≤ 2.0 s"},
		{[]int64{0, 0, 0, 1}, 0.5, "≤ 2.0 s"},
		{nil, 0.5, "–"},
	} {
		if got := quantile(row.n, ends, row.q); got != row.wanted {
			t.Errorf("%v %v: %s, want %s", row.n, row.q, got, row.wanted)
		}
	}
}
