package httpid

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
)

// defaultKey is the attribute under which LogHandler writes IDs by default.
const defaultKey = "request_id"

// LogHandler returns a handler that adds the request's ID to lines logged with the request's
// context, as by slog.InfoContext. The attribute is named key, or request_id if key is empty.
// It is outside of all groups, so that it has the same name in every line.
func LogHandler(h slog.Handler, key string) slog.Handler {
	return &logHandler{Handler: h, root: h, key: cmp.Or(key, defaultKey)}
}

type logHandler struct {
	slog.Handler // with all groups and attributes
	key          string
	// root is the handler before the first group. rest are the groups and attributes added
	// since. The ID is added between the two, so that it is outside of all groups.
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
