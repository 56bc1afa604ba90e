package httpid

import (
	"context"
	"log/slog"
	"slices"
)

// DefaultKey is the name that LogHandler writes IDs under.
const DefaultKey = "request_id"

// LogHandler adds the ID of the request to the lines that are logged with its
// context (slog.InfoContext and the like), under key, or request_id if that is
// empty. It is outside of all groups, so that it is found in the same place in
// every line.
func LogHandler(h slog.Handler, key string) slog.Handler {
	if key == "" {
		key = DefaultKey
	}
	return &logHandler{Handler: h, root: h, key: key}
}

type logHandler struct {
	slog.Handler // with all groups and attributes
	key          string
	// root is as it was before the first group, and rest what came since: an ID
	// has to go in between.
	root slog.Handler
	rest []func(slog.Handler) slog.Handler
}

func (l *logHandler) Handle(ctx context.Context, r slog.Record) error {
	id := FromContext(ctx)
	if id == "" {
		return l.Handler.Handle(ctx, r)
	}
	attr := slog.String(l.key, id)
	if len(l.rest) == 0 {
		r = r.Clone()
		r.AddAttrs(attr)
		return l.Handler.Handle(ctx, r)
	}
	h := l.root.WithAttrs([]slog.Attr{attr})
	for _, f := range l.rest {
		h = f(h)
	}
	return h.Handle(ctx, r)
}

func (l *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h := *l
	h.Handler = l.Handler.WithAttrs(attrs)
	if len(l.rest) == 0 {
		h.root = h.Handler
	} else {
		h.rest = append(slices.Clip(l.rest), func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
	}
	return &h
}

func (l *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	h := *l
	h.Handler = l.Handler.WithGroup(name)
	h.rest = append(slices.Clip(l.rest), func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
	return &h
}
