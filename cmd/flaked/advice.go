package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/zkstore"
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
		return "--", ": a cluster keeps the settings it was made with; leave the flag out, or take another --cluster", e
	}
	if e, ok := errors.AsType[*node.FieldError](err); ok {
		if e.Setting == node.SettingOnRollback {
			return "--", ": take one with it, as --layout leaf,time=40,rollback=1", e
		}
		return "--", ": leave it out", e
	}
	if e, ok := errors.AsType[*node.RangeError](err); ok {
		return "", rangeAdvice(e), e
	}
	if e, ok := errors.AsType[*node.OtherClusterError](err); ok {
		return "", ": give this cluster a --state-dir of its own, or point --zk and --cluster at the one it belongs to", e
	}
	if e, ok := errors.AsType[*node.OtherZooKeeperError](err); ok {
		return "", ": point --zk at the first one; or, if that one is gone for good and this one has taken its place, start once with --zk-replaced", e
	}
	if e, ok := errors.AsType[*coordinator.FrozenError](err); ok {
		if e.By != "" {
			return "", ": wait, or have them say whether `flaked cluster thaw` may end it early", e
		}
		return "", "; `flaked cluster thaw` ends it early if you know that none are left", e
	}
	if _, ok := errors.AsType[*codedError](err); ok {
		return "", "", err // a command has said what to do
	}
	for _, row := range []struct {
		is     error
		advice string
	}{
		{zkstore.ErrUnreachable, ": check --zk (FLAKED_ZK), and that ZooKeeper serves"},
		{coordinator.ErrNoCluster, ": check --zk and --cluster; `flaked cluster init` or `flaked serve --bootstrap` makes one"},
		{zkstore.ErrDenied, ": give the user that the records were made with in --zk-auth-file"},
	} {
		if errors.Is(err, row.is) {
			return "", row.advice, err
		}
	}
	return "", "", err
}

func rangeAdvice(e *node.RangeError) string {
	verb := "give"
	if e.Setting == node.SettingSettle || e.Setting == node.SettingBorrow {
		verb = "make the cluster with"
	}
	switch {
	case e.Most > 0:
		return fmt.Sprintf("; %s --%s %s or less", verb, e.Setting, e.Most)
	case e.Least > 0:
		return fmt.Sprintf("; %s --%s %s or more", verb, e.Setting, e.Least)
	}
	return fmt.Sprintf("; correct --%s", e.Setting)
}
