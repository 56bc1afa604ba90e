package trace

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var kept = flag.String("trace.dir", "", "judge the traces that a campaign has left in this `directory`")

// campaign has the times of the fault campaign.
var campaign = Cluster{Lease: time.Minute, Confirm: 2 * time.Second, Grace: 5 * time.Second, Cooldown: 10 * time.Second}

func TestKeptTraces(t *testing.T) {
	if *kept == "" {
		t.Skip("give -trace.dir, which a campaign with -chaos.report leaves")
	}
	files, err := filepath.Glob(filepath.Join(*kept, "*.trace"))
	if err != nil || len(files) == 0 {
		t.Fatal("no traces", err)
	}
	traces := map[string]io.Reader{}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		traces[filepath.Base(path)] = file
	}
	v, err := Judge(traces, campaign)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range v.Violations {
		t.Error(wrong)
	}
	t.Log(v)
}
