package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// removed maps each removed command, and each removed flag of a command, to what to use instead.
// A row has no effect while its command or flag exists. The table is emptied at 0.1.0.
var removed = map[string]string{
	"config": "`flaked serve` checks its settings file when it starts",
	"rolling-restart": "restart one node after the other with `flaked drain` and `flaked healthcheck`, as the " +
		"guide to restart a cluster shows",
	"layout show":           "use `flaked layout NAME`",
	"layout explain":        "use `flaked layout NAME`",
	"layout check":          "use `flaked layout SPEC` for each of the two layouts",
	"layout choose":         "use `flaked layout` for the list, and `flaked layout SPEC` for the capacity of one",
	"gen":                   "use `flaked serve --dev` and `flaked get`",
	"reset-identity":        "stop the node and remove the file flaked.state in its state directory",
	"workers list":          "use `flaked status`",
	"workers show":          "use `flaked status -o json`",
	"workers history":       "use the logs of the nodes",
	"workers forget-ticket": "unused tickets do no harm",
	"cluster own":           "use setAcl of ZooKeeper's zkCli.sh, as docs/security.md shows",
	"cluster audit":         "use the log of ZooKeeper's servers and of the nodes",
	"seq export":            "use `flaked seq list -o json`",
	"seq verify":            "use the key of `flaked seq show -o json`, as docs/sequences.md shows",
	"seq key":               "use `flaked seq show -o json`",
	"seq import":            "use `flaked seq create --start`",
	"man":                   "use `flaked COMMAND --help`",
	"version":               "use `flaked --version`",

	// Rows of several commands of a group.
	"seq --wait": "leave it out: connected nodes follow at their next heartbeat, and `flaked doctor` names " +
		"those that do not",
	"seq --dry-run":   "leave it and --confirm out: the command says what it would skip or forget",
	"seq --output":    "use the exit code, and `flaked seq show -o json`",
	"seq --note":      "sequences have no notes",
	"seq purge --all": "give one name",

	"workers release --lower-bound": "leave it out: the worker is free when its lease expires",
	"workers release --state-dir":   "leave it out: the worker is free when its lease expires",
	"cluster freeze --workers":      "leave it out: a freeze is of all workers",
	"cluster thaw --workers":        "leave it out: a thaw ends the whole freeze",

	"bench --threads":     "the generator uses all processors",
	"bench --client-spin": "leave it out",
	"bench --protocol":    "use redis-benchmark to measure RESP",
	"bench --command":     "use redis-benchmark to measure other servers or requests",
	"bench --no-check":    "IDs are always checked. redis-benchmark checks nothing",
	"bench --pid":         "use `top` or `pidstat`",

	"decode --zk":         "use --addr, or --layout with the layout that `flaked cluster show` prints",
	"status --watch":      "use `watch -n 2 flaked status`",
	"serve --workers":     "start one node for each worker, or use the layout wide14 or wide16",
	"serve --admin-pprof": "use `perf`, or embed the node in a program with net/http/pprof",
	"serve --admin-tls": "the admin port uses TLS if --tls-cert is given and --admin is not a loopback " +
		"address",
	"serve --reserve":            "it is always 3s",
	"serve --max-batch":          "it is always 10000",
	"serve --engine":             "it is always auto",
	"serve --loops":              "give --listen once for each loop",
	"serve --spin":               "it is always 0",
	"serve --start-timeout":      "it is always 1m",
	"serve --zk-session-timeout": "it is always 6s",
}

// removedCommand returns the error for name under path, such as "flaked seq", nil if the table has no row.
func removedCommand(path, name string) error {
	key := strings.TrimPrefix(path+" "+name, "flaked ")
	if instead := removed[key]; instead != "" {
		return usageError("`flaked %s` was removed: %s", key, instead)
	}
	return nil
}

// removedFlag returns the error for a flag that the command c lacks, nil if the table has no row.
func removedFlag(c *cli.Context, name string) error {
	path := strings.TrimPrefix(c.Command.HelpName, "flaked ")
	group, _, _ := strings.Cut(path, " ")
	instead := cmp.Or(removed[path+" --"+name], removed[group+" --"+name])
	if instead != "" && flagNamed(c.Command.Flags, name) == nil {
		return usageError("--%s was removed: %s", name, instead)
	}
	return nil
}

// removedVariable returns the error for the first removed flag of the command c that the environment
// sets. A variable that another command reads is not an error: one environment serves all commands.
func removedVariable(c *cli.Context) error {
	all := allFlags(c.App.Commands)
	for key := range removed {
		if _, flag, is := strings.Cut(key, "--"); is && all[flag] == nil && os.Getenv(envName(flag)) != "" {
			if err := removedFlag(c, flag); err != nil {
				return usageError("environment variable %s: %w", envName(flag), err)
			}
		}
	}
	return nil
}
