package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/worker"
)

// vector is the vector of foreign/main.go.
type vector struct {
	By       string `json:"by"`
	Layout   string `json:"layout"`
	ID       int64  `json:"id"`
	TimeMs   int64  `json:"time_ms"`
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
}

func parse(t *testing.T, data []byte) (all []vector) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var v vector
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
}

// check decodes each ID with flaked, and encodes the fields that the library gave for
// it. Both must agree with the vector. It returns the number of vectors of each
// library.
func check(t *testing.T, all []vector) map[string]int {
	t.Helper()
	of := map[string]int{}
	for _, v := range all {
		l, err := worker.ParseLayout(v.Layout)
		if err != nil {
			t.Fatal(err)
		}
		want := worker.Fields{Tick: l.FloorTick(v.TimeMs), Worker: v.Worker, Sequence: v.Sequence}
		if got, err := l.Decode(worker.ID(v.ID)); err != nil || got != want || l.Start(got.Tick) != v.TimeMs {
			t.Fatalf("%s: %d is %+v here, %v; want %+v", v.By, v.ID, got, err, want)
		}
		if id, err := l.Encode(want); err != nil || int64(id) != v.ID {
			t.Fatalf("%s: %+v is %d here, %v; want %d", v.By, want, id, err, v.ID)
		}
		of[v.By]++
	}
	return of
}

// atLeast is the least number of vectors of each library.
var atLeast = map[string]int{
	"bwmarrin": 100, "bwmarrin, 8 and 14 bits": 100,
	"sonyflake": 300, "sonyflake v2": 50, "sonyflake v2, own bits": 50,
}

func enough(t *testing.T, got map[string]int) {
	t.Helper()
	if len(got) != len(atLeast) {
		t.Errorf("libraries: %v", got)
	}
	for by, n := range atLeast {
		if got[by] < n {
			t.Errorf("%d IDs of %s, want %d", got[by], by, n)
		}
	}
}

func TestStoredIDsDecodeAlike(t *testing.T) {
	data, err := os.ReadFile("vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	enough(t, check(t, parse(t, data)))
}

// The libraries decode IDs of flaked to the same fields, and flaked those of the
// libraries.
func TestLibrariesDecodeAlike(t *testing.T) {
	path := foreign(t)
	enough(t, check(t, parse(t, command(t, nil, path, "make"))))

	var questions bytes.Buffer
	var want []vector
	enc := json.NewEncoder(&questions)
	for _, layout := range []struct{ by, layout string }{
		{"bwmarrin", "leaf"}, {"bwmarrin, 8 and 14 bits", "wide14"},
		{"sonyflake", "sonyflake"}, {"sonyflake v2", "sonyflake-v2"},
		{"sonyflake v2, own bits", "time=39@1ms,sequence=10,worker=14,epoch=2020-01-01"},
	} {
		l, err := worker.ParseLayout(layout.layout)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(200) {
			f := worker.Fields{
				Tick:     worker.Tick(i * i * i * 12_345),
				Worker:   i * 7919 % int64(l.Workers()),
				Sequence: i * 104729 % l.Sequences(),
			}
			if i == 199 {
				f = worker.Fields{Tick: l.MaxTick(), Worker: int64(l.Workers() - 1), Sequence: l.Sequences() - 1}
			}
			id, err := l.Encode(f)
			if err != nil {
				t.Fatal(err)
			}
			v := vector{By: layout.by, Layout: layout.layout, ID: int64(id), TimeMs: l.Start(f.Tick), Worker: f.Worker, Sequence: f.Sequence}
			want = append(want, v)
			if err := enc.Encode(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := parse(t, command(t, &questions, path, "read"))
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d questions", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s takes it for %+v; here it is %+v", want[i].By, got[i], want[i])
		}
	}
}

// foreign builds the program foreign and returns its path. Without the libraries it
// skips the test, or fails it if FLAKED_TEST_CLIENTS=require is set.
func foreign(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "foreign"
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	mode := os.Getenv("FLAKED_TEST_CLIENTS")
	if mode == "" {
		build.Env = append(build.Env, "GOPROXY=off") // a test that was not asked for fetches nothing
	}
	if out, err := build.CombinedOutput(); err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
		if mode == "require" {
			t.Fatalf("FLAKED_TEST_CLIENTS=require, but no libraries: %v; scripts/get-clients.sh gets them", err)
		}
		t.Skipf("no libraries: %v; scripts/get-clients.sh gets them", err)
	}
	return path
}

func command(t *testing.T, in io.Reader, path string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("foreign %v: %v\n%s", args, err, &stderr)
	}
	return out
}
