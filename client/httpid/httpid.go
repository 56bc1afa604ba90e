// Package httpid gives every request of a net/http server an ID: in its context,
// in the response's header and in the lines of its log, so that what one request
// caused can be found in the logs of all programs that it went through.
//
//	identify, err := httpid.New(httpid.Config{IDs: ids}) // ids is a *client.Client
//	...
//	http.ListenAndServe(addr, identify(mux))
//
// A request is served whether flaked answers or not: see Config.Fallback.
package httpid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"time"

	"github.com/flaked/flaked/worker"
)

// Defaults of Config.
const (
	DefaultHeader  = "X-Request-Id"
	DefaultTimeout = 50 * time.Millisecond
)

// maxIncoming is how long an ID that comes with a request may be.
const maxIncoming = 128

// Source is where IDs come from: a *client.Client.
type Source interface {
	Next(ctx context.Context) (worker.ID, error)
}

// Config is what New needs.
type Config struct {
	// IDs is where new IDs come from. It must be given.
	IDs Source
	// Header is the name of the header. Empty means X-Request-Id.
	Header string
	// Encoding is how IDs are written. The zero Encoding is decimal.
	Encoding worker.Encoding
	// Trust tells whether an ID that comes with a request is taken over: Always, or
	// for those who come by a proxy of one's own. nil means never: whoever sends
	// a request could else have it logged under another's ID.
	Trust func(*http.Request) bool
	// Valid tells whether such an ID is fit to be. nil means Valid.
	Valid func(id string) bool
	// Timeout is how long a request waits for its ID. 0 means 50 ms.
	Timeout time.Duration
	// Fallback is the ID of a request for which there is none, as err says; ""
	// leaves it without. nil means Random.
	Fallback func(r *http.Request, err error) string
	// Required answers such requests with 503, and does not ask Fallback.
	Required bool
	// OnError is told of every request for which there was no ID, to count them,
	// say. nil means nobody is.
	OnError func(r *http.Request, err error)
}

// Always is for Config.Trust.
func Always(*http.Request) bool { return true }

// Random is for Config.Fallback: 32 random hexadecimal digits, which nobody
// takes for an ID of a cluster.
func Random(*http.Request, error) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}

// None is for Config.Fallback: no ID.
func None(*http.Request, error) string { return "" }

// Valid is what an ID that comes from outside has to be: 1 to 128 letters and
// digits of ASCII and - _ . : / + = @. So it can be no more than an ID wherever
// it is written to.
func Valid(id string) bool {
	if len(id) == 0 || len(id) > maxIncoming {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=', c == '@':
		default:
			return false
		}
	}
	return true
}

// New makes a middleware, for any number of handlers. The request that a handler
// sees has the ID in its header too, in place of what came: a reverse proxy
// passes it on.
func New(cfg Config) (func(http.Handler) http.Handler, error) {
	if cfg.IDs == nil {
		return nil, errors.New("httpid: Config.IDs is nil")
	}
	if cfg.Header == "" {
		cfg.Header = DefaultHeader
	}
	if !isToken(cfg.Header) {
		return nil, fmt.Errorf("httpid: Config.Header: %q is no name of a header", cfg.Header)
	}
	cfg.Header = textproto.CanonicalMIMEHeaderKey(cfg.Header)
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Timeout < time.Millisecond {
		return nil, fmt.Errorf("httpid: Config.Timeout is %v, must be at least 1ms", cfg.Timeout)
	}
	if cfg.Valid == nil {
		cfg.Valid = Valid
	}
	if cfg.Fallback == nil {
		cfg.Fallback = Random
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { cfg.serve(w, r, next) })
	}, nil
}

func (c *Config) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	id, err := c.id(r)
	if err != nil {
		if c.OnError != nil {
			c.OnError(r, err)
		}
		if c.Required {
			http.Error(w, "no request ID can be had", http.StatusServiceUnavailable)
			return
		}
		id = c.Fallback(r, err)
	}
	if id == "" {
		r.Header.Del(c.Header)
		next.ServeHTTP(w, r)
		return
	}
	one := []string{id}
	w.Header()[c.Header], r.Header[c.Header] = one, one[:1:1]
	next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), id)))
}

// id is the one that came with the request, or a new one.
func (c *Config) id(r *http.Request) (string, error) {
	if c.Trust != nil {
		if came := r.Header[c.Header]; len(came) == 1 && c.Valid(came[0]) && c.Trust(r) {
			return came[0], nil
		}
	}
	if ahead, ok := c.IDs.(interface{ TryNext() (worker.ID, bool) }); ok {
		// Without a timer, which costs several times as much.
		if id, ok := ahead.TryNext(); ok {
			return c.Encoding.Encode(id), nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.Timeout)
	defer cancel()
	id, err := c.IDs.Next(ctx)
	if err != nil {
		return "", err
	}
	return c.Encoding.Encode(id), nil
}

// isToken tells whether a name may be that of a header.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == ':' || c == '"' || c == ',' || c == ';' || c == '(' || c == ')' || c == '/' {
			return false
		}
	}
	return name != ""
}

type contextKey struct{}

// NewContext is ctx with a request's ID: for work that no request began.
func NewContext(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext is the ID of the request that ctx belongs to, "" if it has none.
func FromContext(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}
