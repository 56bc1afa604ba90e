// Package httpid gives every request of a net/http server an ID. The ID is in the request's
// context and header, in the response's header and in its log lines. With it, all that one
// request caused can be found in the logs of all programs that handled it.
//
//	identify, err := httpid.New(httpid.Config{IDs: source}) // source is a *client.Client or a *flaked.Node
//	...
//	http.ListenAndServe(addr, identify(mux))
//
// By default a request is served even if flaked does not answer: see Config.Fallback.
package httpid

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/flaked/flaked/worker"
)

// Defaults of Config.
const (
	defaultHeader  = "X-Request-Id"
	defaultTimeout = 50 * time.Millisecond
)

// maxIncoming is the most bytes of an ID that comes with a request.
const maxIncoming = 128

// Source returns new IDs. Every ids.Source is one: a *client.Client, or a *flaked.Node inside the
// program. If the Source has the method TryNext of client.Client, TryNext is called first.
type Source interface {
	Next(ctx context.Context) (worker.ID, error)
}

// Config configures New.
type Config struct {
	// IDs returns new IDs. It is required.
	IDs Source
	// Header is the name of the header. Empty means X-Request-Id.
	Header string
	// Trust reports whether to keep the ID that a request brings in its header. Use Always,
	// or a function that recognises your own proxy. nil means never. A client could
	// otherwise have its request logged with the ID of another request.
	Trust func(*http.Request) bool
	// Timeout is how long a request waits for its ID, at least 1 ms. 0 means 50 ms.
	Timeout time.Duration
	// Fallback returns the ID of a request for which IDs returned err. "" means that the
	// request gets no ID. nil means Random.
	Fallback func(r *http.Request, err error) string
	// Required means that such a request is answered with 503, without a call of Fallback.
	Required bool
	// OnError is called for every request for which IDs returned an error, for example to
	// count them. nil means no call.
	OnError func(r *http.Request, err error)
}

// Always returns true. Use it as Config.Trust if all requests come from a trusted proxy.
func Always(*http.Request) bool { return true }

// Random returns 32 random hexadecimal digits, which cannot be mistaken for an ID of a
// cluster. Use it as Config.Fallback.
func Random(*http.Request, error) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Valid reports whether id has 1 to 128 characters, all of them ASCII letters, ASCII digits
// or one of - _ . : / + = @. Such an ID cannot forge a log line, a header or JSON.
func Valid(id string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+=@"
	return id != "" && len(id) <= maxIncoming && strings.Trim(id, allowed) == ""
}

// New returns a middleware for any number of handlers. The request that a handler gets has
// the ID in its header too, in place of what the client sent, so that a reverse proxy passes
// it on. New returns an error if cfg is invalid.
func New(cfg Config) (func(http.Handler) http.Handler, error) {
	if cfg.IDs == nil {
		return nil, errors.New("httpid: Config.IDs is nil")
	}
	cfg.Header = cmp.Or(cfg.Header, defaultHeader)
	if !isToken(cfg.Header) {
		return nil, fmt.Errorf("httpid: Config.Header %q is not a valid header name", cfg.Header)
	}
	cfg.Header = textproto.CanonicalMIMEHeaderKey(cfg.Header)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.Timeout < time.Millisecond {
		return nil, fmt.Errorf("httpid: Config.Timeout is %v, must be at least 1ms", cfg.Timeout)
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
			http.Error(w, "no request ID available. Retry.", http.StatusServiceUnavailable)
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

// id returns the ID that came with the request if it is trusted and valid, or else a new one.
func (c *Config) id(r *http.Request) (string, error) {
	if c.Trust != nil {
		if came := r.Header[c.Header]; len(came) == 1 && Valid(came[0]) && c.Trust(r) {
			return came[0], nil
		}
	}
	if ahead, ok := c.IDs.(interface{ TryNext() (worker.ID, bool) }); ok {
		// TryNext needs no context with a timer, which costs several times as much.
		if id, ok := ahead.TryNext(); ok {
			return id.String(), nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.Timeout)
	defer cancel()
	id, err := c.IDs.Next(ctx)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// isToken reports whether name can be the name of a header. It catches common mistakes only.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`:",;()/`, c)
	})
}

type contextKey struct{}

// NewContext returns ctx with an ID, for work that did not begin with a request.
func NewContext(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns the ID of the request that ctx belongs to, or "" if it has none.
func FromContext(ctx context.Context) string {
	id, _ := ctx.Value(contextKey{}).(string)
	return id
}
