package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/zkstore"
)

func TestExplain(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		text string
	}{
		{"nothing", t.Context(), nil, 0, ""},
		{"something", t.Context(), errors.New("boom"), exitFailure, "boom"},
		{"in one line", t.Context(), errors.Join(errors.New("one"), errors.New("two\r\n")), exitFailure, "one; two"},
		{"of a package", t.Context(), fmt.Errorf("node: taking a slot: coordinator: zkstore: %w", errors.New("localcache: no")), exitFailure, "taking a slot: no"},
		{"not of a package", t.Context(), errors.New("no worker: none"), exitFailure, "no worker: none"},
		{"usage", t.Context(), usageError("bad %d", 1), exitUsage, "bad 1"},
		{"wrapped", t.Context(), fmt.Errorf("x: %w", exitWith(exitDegraded, "y")), exitDegraded, "x: y"},
		{"unreachable", t.Context(), fmt.Errorf("%w: sync", zkstore.ErrUnreachable), exitUnreachable, "ZooKeeper cannot be reached: sync: check --zk (FLAKED_ZK), and that ZooKeeper serves"},
		{"denied", t.Context(), zkstore.ErrDenied, exitFailure, "ZooKeeper denied access: give the user that the records were made with in --zk-auth-file"},
		{"no cluster", t.Context(), coordinator.ErrNoCluster, exitFailure, "no such cluster in this ZooKeeper: check --zk and --cluster; `flaked cluster init` or `flaked serve --bootstrap` makes one"},
		{"interrupted", interrupted, zkstore.ErrUnreachable, exitFailure, "interrupted"},
		{"failed while interrupted", interrupted, errors.New("disk full"), exitFailure, "disk full"},
	} {
		if code, text := explain(row.ctx, row.err); code != row.code || text != row.text {
			t.Errorf("%s: %d %q, want %d %q", row.name, code, text, row.code, row.text)
		}
	}
}
