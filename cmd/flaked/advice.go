package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/node"
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
		return "--", ". A cluster keeps the settings that it was created with. Leave the flag out, or give another --cluster", e
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
	if e, ok := errors.AsType[*node.OtherClusterError](err); ok {
		return "", ". Give this cluster its own --state-dir, or point --zk and --cluster at the cluster of this state directory", e
	}
	if e, ok := errors.AsType[*node.OtherZooKeeperError](err); ok {
		return "", ". Point --zk at the first one. If that one is gone for good and this one replaces it, start once with --zk-replaced", e
	}
	if e, ok := errors.AsType[*coordinator.FrozenError](err); ok {
		if e.By != "" {
			return "", ". Wait, or ask the operator whether `flaked cluster thaw` may end the freeze early", e
		}
		return "", ". If you know that no holder is left, `flaked cluster thaw` ends the freeze early", e
	}
	if _, ok := errors.AsType[*coordinator.StillFrozenError](err); ok {
		return "", ". See flaked cluster thaw --help", err
	}
	if _, ok := errors.AsType[*codedError](err); ok {
		return "", "", err // a command has said what to do
	}
	for _, row := range []struct {
		is     error
		advice string
	}{
		{zkstore.ErrUnreachable, ". Check --zk (FLAKED_ZK), and that ZooKeeper runs and has a quorum"},
		{coordinator.ErrNoCluster, ". Check --zk and --cluster. `flaked cluster init` or `flaked serve --bootstrap` creates a cluster"},
		{zkstore.ErrDenied, ". Give --zk-auth-file with the user that created the records"},
		{seqstore.ErrNoState, ". Start a node with `flaked serve`, and try again when it is ready"},
		{seqstore.ErrExists, ". `flaked seq show` prints it, and `flaked seq set` changes it"},
		{seqstore.ErrNotFound, ". `flaked seq list` prints the names"},
		{seqstore.ErrStartNeeded, ". Give it with --start. If you know that the name is new, give --start 1"},
		{seqstore.ErrTooEarly, ". `flaked seq show` prints when that is"},
	} {
		if errors.Is(err, row.is) {
			return "", row.advice, err
		}
	}
	return "", "", err
}

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
