package main

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
)

// opened is a client, and the sequences that it was asked for. They keep what they prefetch.
type opened struct {
	client   *client.Client
	prefetch client.Config

	mu        sync.Mutex // guards sequences
	sequences map[string]ids.Sequence
}

// call is one request to a client, as the driver reads it.
type call struct {
	Op   string `json:"op"`
	N    *int   `json:"n"`
	Name string `json:"name"`
	Key  string `json:"key"`
}

// failure is an error in the terms of all clients.
type failure struct {
	Kind         string `json:"kind"`
	Code         string `json:"code,omitempty"`
	Reason       string `json:"reason,omitempty"`
	RetryAfterMs int64  `json:"retry_after_ms,omitempty"`
	Text         string `json:"text"`
}

func failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Kind: "argument", Text: err.Error()}
	if reply, ok := errors.AsType[*ids.ReplyError](err); ok {
		f.Kind, f.Code, f.Reason = "refused", string(reply.Code), reply.Reason()
		f.RetryAfterMs = reply.RetryAfter().Milliseconds()
	}
	switch {
	case errors.Is(err, ids.ErrClosed):
		f.Kind = "closed"
	case errors.Is(err, ids.ErrUnavailable):
		f.Kind = "unavailable"
	}
	return f
}

func (o *opened) sequence(name string) ids.Sequence {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sequences[name] == nil {
		o.sequences[name] = o.client.SequenceWith(name, client.SequenceConfig{Prefetch: o.prefetch.Prefetch,
			MaxAge: o.prefetch.MaxAge})
	}
	return o.sequences[name]
}

// call makes a call, and returns its values as text.
func (o *opened) call(c call, limit time.Duration) ([]string, error) {
	ctx, cancel := within(limit)
	defer cancel()
	switch c.Op {
	case "next":
		id, err := o.client.Next(ctx)
		return texts(err, int64(id))
	case "take":
		ids, err := o.client.Take(ctx, *c.N)
		var all []int64
		for _, id := range ids {
			all = append(all, int64(id))
		}
		return texts(err, all...)
	case "seq_next":
		if c.N != nil {
			values, err := o.sequence(c.Name).Take(ctx, *c.N)
			return texts(err, values...)
		}
		v, err := o.sequence(c.Name).Next(ctx)
		return texts(err, v)
	case "seq_range":
		first, last, err := o.sequence(c.Name).Range(ctx, *c.N)
		return texts(err, first, last)
	case "seq_key":
		v, err := o.sequence(c.Name).NextKeyed(ctx, c.Key)
		return texts(err, v)
	}
	return nil, errors.New("no such op: " + c.Op)
}

func texts(err error, values ...int64) (all []string, _ error) {
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		all = append(all, strconv.FormatInt(v, 10))
	}
	return all, nil
}
