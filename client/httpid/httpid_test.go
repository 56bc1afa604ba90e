package httpid

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source returns 42, or err, or blocks until the context ends if hangs is set.
type source struct {
	err   error
	hangs bool
	asked int
}

func (s *source) Next(ctx context.Context) (worker.ID, error) {
	s.asked++
	if s.hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return 42, s.err
}

var errDown = errors.New("down")

const random = "[0-9a-f]{32}"

var own = func(_ *http.Request, err error) string { return "no:" + err.Error() }
var fromProxy = func(r *http.Request) bool { return r.RemoteAddr == "192.0.2.1:1234" }

var middlewareRows = []struct {
	name string
	cfg  Config
	src  source
	came []string
	want string // of the ID, a regular expression; "": none
	code int
}{
	{name: "new", want: "42"},
	{name: "what came is not trusted", came: []string{"abc"}, want: "42"},
	{name: "trusted", cfg: Config{Trust: Always}, came: []string{"ab-C_9.:/+=@"}, want: `ab-C_9\.:/\+=@`},
	{name: "nothing came", cfg: Config{Trust: Always}, want: "42"},
	{name: "empty", cfg: Config{Trust: Always}, came: []string{""}, want: "42"},
	{name: "with a line break", cfg: Config{Trust: Always}, came: []string{"a\nb"}, want: "42"},
	{name: "with a blank", cfg: Config{Trust: Always}, came: []string{"a b"}, want: "42"},
	{name: "with a quote", cfg: Config{Trust: Always}, came: []string{`a"b`}, want: "42"},
	{name: "not ASCII", cfg: Config{Trust: Always}, came: []string{"ä"}, want: "42"},
	{name: "the longest", cfg: Config{Trust: Always}, came: []string{strings.Repeat("a", 128)}, want: "a{128}"},
	{name: "too long", cfg: Config{Trust: Always}, came: []string{strings.Repeat("a", 129)}, want: "42"},
	{name: "two", cfg: Config{Trust: Always}, came: []string{"a", "b"}, want: "42"},
	{name: "trusted by whom it is", cfg: Config{Trust: fromProxy}, came: []string{"abc"}, want: "abc"},
	{name: "down", src: source{err: errDown}, want: random},
	{name: "down, trusted", cfg: Config{Trust: Always}, src: source{err: errDown}, came: []string{"abc"},
		want: "abc"},
	{name: "silent", cfg: Config{Timeout: 5 * time.Millisecond}, src: source{hangs: true}, want: random},
	{name: "down, none", cfg: Config{Fallback: func(*http.Request, error) string { return "" }},
		src: source{err: errDown}, came: []string{"abc"}, want: ""},
	{name: "down, own", cfg: Config{Fallback: own}, src: source{err: errDown}, want: "no:down"},
	{name: "down, required", cfg: Config{Required: true}, src: source{err: errDown},
		code: http.StatusServiceUnavailable},
	{name: "own header", cfg: Config{Header: "x-trace-id"}, want: "42"},
}

func TestMiddleware(t *testing.T) {
	for _, row := range middlewareRows {
		t.Run(row.name, func(t *testing.T) {
			row.cfg.IDs = &row.src
			errs := 0
			row.cfg.OnError = func(_ *http.Request, err error) { errs++ }
			m, err := New(row.cfg)
			if err != nil {
				t.Fatal(err)
			}
			header := row.cfg.Header
			if header == "" {
				header = defaultHeader
			}
			served := false
			h := m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served = true
				id := FromContext(r.Context())
				if !regexp.MustCompile("^(?:" + row.want + ")$").MatchString(id) {
					t.Errorf("the handler's ID is %q, want %s", id, row.want)
				}
				if got := r.Header.Get(header); got != id {
					t.Errorf("the request's header is %q, its context has %q", got, id)
				}
				if got := w.Header().Get(header); got != id {
					t.Errorf("the response's header is %q, the context has %q", got, id)
				}
			}))
			r := httptest.NewRequest("GET", "/", nil)
			if row.came != nil {
				r.Header[http.CanonicalHeaderKey(header)] = row.came
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if want := cmp.Or(row.code, http.StatusOK); w.Code != want || served != (want == http.StatusOK) {
				t.Errorf("status %d, want %d; served: %v", w.Code, want, served)
			}
			if fails := row.src.asked > 0 && (row.src.err != nil || row.src.hangs); fails != (errs == 1) {
				t.Errorf("told of %d errors", errs)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for _, row := range []struct {
		name, err string
		cfg       Config
	}{
		{"no source", "IDs is nil", Config{}},
		{"bad header", "is not a valid header name", Config{IDs: &source{}, Header: "X Request"}},
		{"a colon", "is not a valid header name", Config{IDs: &source{}, Header: "X-Request:"}},
		{"seconds as a bare number", "Timeout is 5ns", Config{IDs: &source{}, Timeout: 5}},
	} {
		if _, err := New(row.cfg); err == nil || !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestLogHandler(t *testing.T) {
	ctx := NewContext(context.Background(), "42")
	for _, row := range []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"plain", func(l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, `{"msg":"m","a":1,"request_id":"42"}`},
		{"no context", func(l *slog.Logger) { l.Info("m", "a", 1) }, `{"msg":"m","a":1}`},
		{"attributes", func(l *slog.Logger) { l.With("b", 2).InfoContext(ctx, "m") },
			`{"msg":"m","b":2,"request_id":"42"}`},
		{"group", func(l *slog.Logger) { l.With("b", 2).WithGroup("g").With("c", 3).InfoContext(ctx, "m", "a", 1) },
			`{"msg":"m","b":2,"request_id":"42","g":{"c":3,"a":1}}`},
		{"groups", func(l *slog.Logger) { l.WithGroup("g").WithGroup("h").InfoContext(ctx, "m", "a", 1) },
			`{"msg":"m","request_id":"42","g":{"h":{"a":1}}}`},
	} {
		var buf bytes.Buffer
		drop := func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		}
		plain := slog.NewJSONHandler(&buf, &slog.HandlerOptions{ReplaceAttr: drop})
		row.log(slog.New(LogHandler(plain, "")))
		if got := strings.TrimSpace(buf.String()); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// The handler obeys the rules that slog.Handler states.
func TestLogHandlerConforms(t *testing.T) {
	var buf bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		buf.Reset()
		return LogHandler(slog.NewJSONHandler(&buf, nil), "")
	}, func(t *testing.T) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(buf.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestTransport(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("X-Trace"))
	}))
	defer other.Close()
	c := http.Client{Transport: &Transport{Base: other.Client().Transport, Header: "X-Trace"}}
	send := func(ctx context.Context, set string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "GET", other.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if set != "" {
			r.Header.Set("X-Trace", set)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if r.Header.Get("X-Trace") != set {
			t.Error("the caller's request was changed")
		}
	}
	send(NewContext(t.Context(), "42"), "")
	send(NewContext(t.Context(), "42"), "mine")
	send(t.Context(), "")
	if strings.Join(got, ",") != "42,mine," {
		t.Errorf("%q", got)
	}
}
