package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

// advised returns an error's text, followed by advice that names flags and commands. The
// packages below know neither flags nor commands.
func advised(err error) string {
	lead, advice, known := advise(err)
	return strings.Replace(err.Error(), known.Error(), lead+plain(known.Error())+advice, 1)
}

// advise returns advice for known, which is an error in err, or err itself. lead is "--" if
// known's text begins with a setting's name, which is also a flag's name.
func advise(err error) (lead, advice string, known error) {
	if e, ok := errors.AsType[*node.DiffersError](err); ok {
		return "--", ". A cluster keeps the settings that it was created with. Leave the flag out, or give another " +
			"--cluster", e
	}
	if e, ok := errors.AsType[*node.FieldError](err); ok {
		if e.Setting == node.SettingOnRollback {
			return "--", ". Give a layout that has one, such as --layout leaf,time=40,rollback=1", e
		}
		return "--", ". Leave it out", e
	}
	if e, ok := errors.AsType[*node.RangeError](err); ok {
		return "", rangeAdvice(e), e
	}
	if e, ok := errors.AsType[*node.StateOfOtherClusterError](err); ok {
		return "", adviceOf(view.OtherCluster), e
	}
	if e, ok := errors.AsType[*coordinator.OtherClusterError](err); ok {
		return "", ". Correct --zk, if it is another ZooKeeper. Otherwise the cluster was created anew: read " +
			"docs/troubleshooting.md before you empty --state-dir", e
	}
	if e, ok := errors.AsType[*node.OtherZooKeeperError](err); ok {
		return "", ". Point --zk at the first one. If that one is gone for good and this one replaces it, start once " +
			"with --zk-replaced", e
	}
	if e, ok := errors.AsType[*node.LostClusterError](err); ok {
		return "", ". Correct --zk and --cluster. If they are right, ZooKeeper has lost its data: see " +
			"docs/troubleshooting.md, and if no other node runs, start this one with --bootstrap, which puts the " +
			"cluster back", e
	}
	if e, ok := errors.AsType[*coordinator.FrozenError](err); ok {
		if e.By != "" {
			return "", adviceOf(view.FrozenByOperator), e
		}
		return "", adviceOf(view.Frozen), e
	}
	if _, ok := errors.AsType[*coordinator.StillFrozenError](err); ok {
		return "", adviceOf(view.Frozen), err
	}
	if _, ok := errors.AsType[*codedError](err); ok {
		return "", "", err // a command has said what to do
	}
	return "", sentinelAdvice(err), err
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

func rangeAdvice(e *node.RangeError) string {
	verb := "Give"
	if e.Setting == node.SettingConfirmTime || e.Setting == node.SettingBorrow {
		verb = "Create the cluster with"
	}
	switch {
	case e.Most > 0:
		return fmt.Sprintf(". %s --%s %s or less", verb, e.Setting, e.Most)
	case e.Least > 0:
		return fmt.Sprintf(". %s --%s %s or more", verb, e.Setting, e.Least)
	}
	return fmt.Sprintf(". Correct --%s", e.Setting)
}
