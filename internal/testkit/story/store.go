package story

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/store"
)

// Store returns a store that prints the calls of somebody.
func (s *Story) Store(who string, st store.Store) store.Store { return spy{st, s, who} }

type spy struct {
	store.Store
	s   *Story
	who string
}

func (p spy) say(err error, format string, args ...any)  { p.tell(false, err, format, args...) }
func (p spy) look(err error, format string, args ...any) { p.tell(true, err, format, args...) }

func (p spy) tell(looks bool, err error, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if err != nil {
		text += ": " + err.Error()
	}
	p.s.say(looks, p.who, "%s", text)
}

func (p spy) Get(ctx context.Context, path string) ([]byte, store.Stat, error) {
	data, stat, err := p.Store.Get(ctx, path)
	switch {
	case errors.Is(err, store.ErrNoNode):
		p.look(nil, "reads %s", p.s.record(path, "", nil))
	case err != nil:
		p.look(err, "reads %s", path)
	default:
		p.look(nil, "reads %s", p.s.record(path, version(stat.Version), some(data)))
	}
	return data, stat, err
}

// version names a version of a record. Empty: any.
func version(v int32) string {
	if v == store.AnyVersion {
		return ""
	}
	return fmt.Sprint(" v", v)
}

// over says which version of a record a write needs.
func over(v int32) string {
	if v == store.AnyVersion {
		return " over any"
	}
	return " over" + version(v)
}

// some returns data that are not nil.
func some(data []byte) []byte { return append([]byte{}, data...) }

func (p spy) GetAll(ctx context.Context, paths ...string) ([]store.Record, error) {
	found, err := p.Store.GetAll(ctx, paths...)
	if err != nil {
		p.look(err, "reads %s", list(paths))
		return found, err
	}
	var texts []string
	for i, r := range found {
		if r.Found {
			r.Data = some(r.Data)
		}
		texts = append(texts, p.s.record(paths[i], version(r.Stat.Version), r.Data))
	}
	p.look(nil, "reads %s", list(texts))
	return found, err
}

func (p spy) Children(ctx context.Context, path string) ([]string, error) {
	names, err := p.Store.Children(ctx, path)
	text := strings.Join(names, " ")
	if n := len(names); n > 3 {
		text = fmt.Sprintf("%s to %s, %d in all", names[0], names[n-1], n)
	}
	p.look(err, "lists %s: %s", path, cmp.Or(text, "nothing"))
	return names, err
}

func (p spy) Create(ctx context.Context, path string, data []byte, kind store.Kind) (string, error) {
	made, err := p.Store.Create(ctx, path, data, kind)
	what := "creates "
	if kind == store.Ephemeral {
		what += "for this session "
	}
	if err != nil {
		p.say(err, "%s%s", what, path)
	} else {
		p.say(nil, "%s%s", what, p.s.record(made, "", some(data)))
	}
	return made, err
}

func (p spy) Set(ctx context.Context, path string, data []byte, v int32) (store.Stat, error) {
	stat, err := p.Store.Set(ctx, path, data, v)
	if err != nil {
		p.say(err, "writes %s%s", path, over(v))
	} else {
		p.say(nil, "writes %s", p.s.record(path, over(v), some(data)))
	}
	return stat, err
}

func (p spy) Delete(ctx context.Context, path string, version int32) error {
	err := p.Store.Delete(ctx, path, version)
	if err == nil {
		p.s.record(path, "", nil)
	}
	p.say(err, "deletes %s", path)
	return err
}

func (p spy) Multi(ctx context.Context, ops ...store.Op) error {
	err := p.Store.Multi(ctx, ops...)
	about := func(path, version string, data []byte) string {
		if err != nil {
			return path + version
		}
		return p.s.record(path, version, data)
	}
	var texts []string
	for _, op := range ops {
		switch op := op.(type) {
		case store.CheckOp:
			texts = append(texts, op.Path+" is still"+version(op.Version))
		case store.CreateOp:
			texts = append(texts, "creates "+about(op.Path, "", some(op.Data)))
		case store.SetOp:
			texts = append(texts, "writes "+about(op.Path, over(op.Version), some(op.Data)))
		case store.DeleteOp:
			about(op.Path, "", nil)
			texts = append(texts, "deletes "+op.Path)
		}
	}
	p.say(err, "at once: %s", list(texts))
	return err
}

func (p spy) Sync(ctx context.Context, path string) error {
	err := p.Store.Sync(ctx, path)
	p.look(err, "waits for its server to catch up")
	return err
}

func (p spy) EnsureRoot(ctx context.Context, paths ...string) error {
	err := p.Store.EnsureRoot(ctx, paths...)
	p.say(err, "creates what is missing of %s", strings.Join(paths, ", "))
	return err
}

func (p spy) Close() error {
	err := p.Store.Close()
	p.say(err, "ends its session")
	return err
}
