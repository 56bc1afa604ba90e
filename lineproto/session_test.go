package lineproto

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// A node that has just started does not know yet whether its cluster stays.
func TestStartingNodeIsOfNoCluster(t *testing.T) {
	s := newTestServer(t, Config{Backend: &fakeBackend{starting: true}})
	for in, want := range map[string]string{
		"WORKER\nGET\n":      "worker=7 state=serving cluster=demo cluster_uuid=none\n1000\n",
		"WORKER demo\nGET\n": "-NOTREADY starting: the node has not joined its cluster yet\n",
	} {
		if out, _ := talk(s, in); out != want {
			t.Errorf("%q: got %q, want %q", in, out, want)
		}
	}
}

// TestBatch: a GET n is answered with n lines, however many reservations it takes and
// whatever their shapes.
func TestBatch(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    *fakeBackend
	}{
		{"one run", &fakeBackend{}},
		{"neighbouring runs of one", &fakeBackend{maxRun: 1}},
		{"runs of one apart", &fakeBackend{maxRun: 1, gap: 3}},
		{"runs of 4096", &fakeBackend{maxRun: 4096, gap: 1}},
		{"wide steps", &fakeBackend{maxRun: 100, step: 1024}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newTestServer(t, Config{Backend: tc.b})
			out, _ := talk(s, "GET 10000\nPING\n")
			got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if len(got) != 10001 || got[10000] != "PONG" {
				t.Fatalf("%d lines, the last %q", len(got), got[len(got)-1])
			}
			seen := make(map[string]bool)
			for _, line := range got[:10000] {
				if _, ok := number([]byte(line)); !ok || seen[line] {
					t.Fatalf("line %q: no ID, or a second time", line)
				}
				seen[line] = true
			}
			if n := s.Counters().IDs; n != 10000 {
				t.Fatalf("%d IDs were counted", n)
			}
		})
	}
}

// TestGETsAfterAFailedReservationGetTheError: GETs in a stretch get IDs until a reservation fails. The others get
// the error.
func TestGETsAfterAFailedReservationGetTheError(t *testing.T) {
	calls := 0
	b := &fakeBackend{maxRun: 2, reserve: func(context.Context, int) error {
		if calls++; calls == 2 {
			return replies.New(ids.FENCED, "lease lost")
		}
		return nil
	}}
	s := newTestServer(t, Config{Backend: b})
	out, _ := talk(s, "GET\nGET\nGET\nGET\nPING\nGET\n")
	if want := "1000\n1001\n-FENCED lease lost\n-FENCED lease lost\nPONG\n1002\n"; out != want {
		t.Fatalf("got %q, want %q", out, want)
	}
	want := []RequestCount{{"GET", "OK", 3}, {"GET", "FENCED", 2}}
	if got := s.Counters().Requests[:2]; !reflect.DeepEqual(got, want) {
		t.Fatalf("counted %v, want %v", got, want)
	}
}

func TestErrorReplies(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{replies.New(ids.NOTREADY, "starting reason=no_bound"), "-NOTREADY starting reason=no_bound\n"},
		{replies.New(ids.EXHAUSTED, ""), "-EXHAUSTED\n"},
		{fmt.Errorf("node: %w", replies.New(ids.FENCED, "worker 7")), "-FENCED worker 7\n"},
		{replies.New(ids.NOAUTH, "a\nb\r\nc"), "-NOAUTH a b  c\n"},
		{replies.New("NEWER", "x"), "-ERR x\n"},
		{errors.New("no\nnews"), "-NOTREADY no news\n"},
		{context.Canceled, "-NOTREADY context canceled\n"},
	} {
		b := &fakeBackend{ready: tc.err, reserve: func(context.Context, int) error { return tc.err }}
		s := newTestServer(t, Config{Backend: b})
		for _, request := range []string{"GET\n", "GET 5\n", "GET tag\n", "MGET a\n", "READY\n"} {
			if out, closed := talk(s, request); out != tc.want || closed {
				t.Errorf("%v: %q gets %q, closed %v, want %q", tc.err, request, out, closed, tc.want)
			}
		}
	}
}

// TestMultilineBackend: text of a Backend stays in its line.
func TestMultilineBackend(t *testing.T) {
	b := &fakeBackend{stats: func() [][2]string { return [][2]string{{"a\nb", "c\r\nd"}} }}
	if out, _ := talk(newTestServer(t, Config{Backend: b}), "STATS\n"); out != "a b c  d\nEND\n" {
		t.Fatalf("got %q", out)
	}
}

func TestHelp(t *testing.T) {
	s := newTestServer(t, Config{})
	for _, row := range []struct {
		request, first, end string
		resp                bool
	}{
		{"HELP\r\n", "GET [n | tag] ", "END\r\n", false},
		{request("HELP"), "GET [key [COUNT n]] ", "\r\n", true},
	} {
		out, _ := talk(s, row.request)
		if row.resp {
			_, out, _ = strings.Cut(out, "\r\n") // its length
		}
		table, ended := strings.CutSuffix(out, row.end)
		if !ended || !strings.HasPrefix(table, row.first) || !strings.Contains(table, "(1 to 10000)") {
			t.Errorf("got %q", out)
		}
		for i := range s.table {
			if c := s.table[i].in(row.resp); c.help != "" && !strings.Contains(table, c.help+"\r\n") {
				t.Errorf("%s is not in %q", c.name, out)
			}
		}
	}
}

// TestHTTPReply: an HTTP client understands the answer.
func TestHTTPReply(t *testing.T) {
	for _, h := range []string{"", hint, "a\r\nb"} {
		out, closed := talk(newTestServer(t, Config{AdminHint: h}), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		r := bufio.NewReader(strings.NewReader(out))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := resp.Write(&body); err != nil { // fails on a short body
			t.Fatal(err)
		}
		if resp.StatusCode != 400 || r.Buffered() != 0 || !closed || !resp.Close {
			t.Fatalf("%q, closed %v", out, closed)
		}
	}
}

// A program that gives no status answers STATUS as an older release does.
func TestStatusIsUnknownWithoutConfig(t *testing.T) {
	s, err := New(Config{Backend: &fakeBackend{}})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := talk(s, "STATUS\n"); out != "-ERR unknown command \"STATUS\", HELP lists them\n" {
		t.Error(out)
	}
}

// TestStatsCountsItsOwnConnection: STATS counts the earlier requests of its connection.
func TestStatsCountsItsOwnConnection(t *testing.T) {
	var s *Server
	b := &fakeBackend{stats: func() [][2]string { return [][2]string{{"ids", fmt.Sprint(s.Counters().IDs)}} }}
	s = newTestServer(t, Config{Backend: b})
	if out, _ := talk(s, "GET\nGET 7\nSTATS\n"); !strings.HasSuffix(out, "ids 8\nEND\n") {
		t.Fatalf("got %q", out)
	}
}

// TestWrongRunLengthIsAnError: a run of a wrong length is answered with an error, never with a wrong
// number of IDs.
func TestWrongRunLengthIsAnError(t *testing.T) {
	for _, n := range []int{-1, 0, 3} {
		s := newTestServer(t, Config{Backend: &fakeBackend{tick: func(int) (k int, p worker.Pause) { return n, p }}})
		want := fmt.Sprintf("-NOTREADY internal error: the node reserved %d of 2 IDs. Try another node\n", n)
		if out, _ := talk(s, "GET 2\n"); out != want {
			t.Errorf("got %q, want %q", out, want)
		}
		if out, _ := talk(s, "GET\nGET\n"); out != want+want {
			t.Errorf("got %q, want %q twice", out, want)
		}
	}
}
