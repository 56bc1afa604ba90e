package main

import (
	"errors"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

// advised returns an error's text with the names of flags, and with advice that names flags and commands. The
// packages below know neither.
func advised(err error) string {
	err = node.Named(err, flagName)
	advice, known := advise(err)
	return strings.Replace(err.Error(), known.Error(), inPlainWords(known.Error())+advice, 1)
}

// advise returns advice for known, which is an error in err, or err itself.
func advise(err error) (advice string, known error) {
	if e, ok := errors.AsType[*node.StateOfOtherClusterError](err); ok {
		return adviceOf(view.OtherCluster), e
	}
	if e, ok := errors.AsType[*coordinator.OtherClusterError](err); ok {
		return ". Correct --zk, if it is another ZooKeeper. Otherwise the cluster was created anew: read " +
			"docs/troubleshooting.md before you empty --state-dir", e
	}
	if e, ok := errors.AsType[*coordinator.FencedError](err); ok && e.Cloned {
		return ". Its next start is a new node. IDs that both have made since then can be equal: see limit 3 in " +
			"docs/safety.md", e
	}
	if e, ok := errors.AsType[*node.OtherZooKeeperError](err); ok {
		return ". Point --zk at the first one. If that one is gone for good and this one replaces it, start once " +
			"with --zk-replaced", e
	}
	if e, ok := errors.AsType[*node.LostClusterError](err); ok {
		return ". Correct --zk and --cluster. If they are right, ZooKeeper has lost its data: see " +
			"docs/troubleshooting.md, and if no other node runs, start this one with --bootstrap, which puts the " +
			"cluster back", e
	}
	if e, ok := errors.AsType[*coordinator.FrozenError](err); ok {
		if e.By != "" {
			return adviceOf(view.FrozenByOperator), e
		}
		return adviceOf(view.Frozen), e
	}
	if _, ok := errors.AsType[*coordinator.StillFrozenError](err); ok {
		return adviceOf(view.Frozen), err
	}
	if _, ok := errors.AsType[*codedError](err); ok {
		return "", err // a command has said what to do
	}
	return sentinelAdvice(err), err
}

// sentinelAdvice returns the advice for an error without a type of its own, or "".
func sentinelAdvice(err error) string {
	for _, row := range []struct {
		is     error
		advice string
	}{
		{store.ErrUnreachable, adviceOf(view.ZooKeeperDown)},
		{coordinator.ErrDamaged, adviceOf(view.ClusterDamaged)},
		{coordinator.ErrNoCluster, adviceOf(view.NoCluster)},
		{store.ErrDenied, adviceOf(view.ZooKeeperDenied)},
		{store.ErrQuota, adviceOf(view.ZooKeeperQuota)},
		{store.ErrLocalSession, adviceOf(view.ZooKeeperLocal)},
		{operator.ErrNoState, ". Start a node with `flaked serve`, and try again when it is ready"},
		{operator.ErrExists, ". `flaked seq show` prints it, and `flaked seq set` changes it"},
		{operator.ErrNotFound, ". `flaked seq list` prints the names"},
		{operator.ErrStartNeeded, ". Give it with --start. If you know that the name is new, give --start 1"},
		{operator.ErrTooEarly, ". `flaked seq show` prints when it may be purged"},
	} {
		if errors.Is(err, row.is) {
			return row.advice
		}
	}
	return ""
}

// adviceOf returns the advice of a cause as the end of a sentence, which may go on.
func adviceOf(p view.Problem) string { return ". " + strings.TrimSuffix(p.Advice, ".") }
