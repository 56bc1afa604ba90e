package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/worker"
)

// someDay is the time at which these tests look at layouts.
var someDay = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func mustLayout(t testing.TB, text string) worker.Layout {
	t.Helper()
	l, err := worker.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUsableNow(t *testing.T) {
	for _, row := range []struct {
		layout, at, wrong string
	}{
		{"leaf", "2026-11-21", ""},
		{"leaf", "2080-07-10", ""},
		{"leaf", "2080-07-11", "used up on 2080-07-10. Give it another epoch, as in leaf,epoch=2080-07-11"},
		{"uid-generator", "2024-11-20", ""},
		{"uid-generator", "2024-11-21", "used up on 2024-11-20. Give it another epoch, as in " +
			"uid-generator,epoch=2024-11-21"},
		{"worker=3,epoch=2030-01-01", "2029-12-31", "its epoch, 2030-01-01T00:00:00Z, is in the future"},
		{"worker=3,epoch=2030-01-01", "2030-01-01", ""},
	} {
		at, err := time.Parse(time.DateOnly, row.at)
		if err != nil {
			t.Fatal(err)
		}
		err = checkUsable(mustLayout(t, row.layout), at)
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s on %s: %v, want %q", row.layout, row.at, err, row.wrong)
		}
	}
}

func TestLayoutGolden(t *testing.T) {
	var b strings.Builder
	for _, layout := range []string{"time=30@1h,segment=2,datacenter=3,worker=22,sequence=0,epoch=0", "uid-generator"} {
		if err := showLayout(&b, mustLayout(t, layout), someDay); err != nil {
			t.Error(err)
		}
	}
	golden(t, "layouts.txt", b.String()+call(t, "", "layout").stdout)
}

// dates returns the days on which the time field of a layout begins and ends.
func dates(l worker.Layout) (begins, ends string) {
	return l.Time(worker.Fields{}).Format(time.DateOnly), l.Expires().Format(time.DateOnly)
}

// docs/layouts.md is right about the presets, and every layout in it can be parsed.
func TestLayoutsDocument(t *testing.T) {
	doc := readFile(t, "docs/layouts.md")
	for _, p := range worker.Presets() {
		begins, ends := dates(p.Layout)
		_, line, found := strings.Cut(doc, "\n| `"+p.Name+"`")
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("%s is not there", p.Name)
			continue
		}
		leafBegins, leafEnds := dates(worker.Leaf())
		asLeaf := strings.Contains(line, "as `leaf`") && begins == leafBegins && ends == leafEnds
		for _, want := range []string{words.Grouped(int64(p.Layout.Workers())),
			words.Grouped(int64(perSecond(p.Layout))), begins, ends} {
			if !strings.Contains(line, want) && !(asLeaf && strings.HasPrefix(want, "20")) {
				t.Errorf("%s: %s is not in %q", p.Name, want, line)
			}
		}
	}
	written := regexp.MustCompile("[` ]((?:[a-z0-9-]+,)?(?:time|segment|datacenter|worker|sequence|epoch)=[0-9][^` " +
		"\n]*)")
	found := written.FindAllStringSubmatch(doc, -1)
	for _, m := range found {
		if _, err := worker.ParseLayout(strings.TrimSuffix(m[1], ",")); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if len(found) < 5 {
		t.Errorf("only %d layouts are written there", len(found))
	}
}
