package main

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/doctor"
	"github.com/flaked/flaked/internal/ops/words"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check what a node needs, and say what to do",
		Description: `Checks ZooKeeper, the cluster's record, the state directory, the clock, ports, tokens
and certificates for a node with these flags. Give it the node's flags, best its
--config, and run it as the node's user. It may run beside the node, whose record then
says where it serves. It leaves nothing behind: it tests with one ephemeral record in
ZooKeeper and one file without a name.

Exits with 0 if all is well, 4 after a warning, 1 after a failure, and 3 if it failed
only because ZooKeeper cannot be reached. It takes at most --timeout and a few
seconds, even if something hangs.

Examples:
  flaked doctor --zk zk1:2181,zk2:2181,zk3:2181 --state-dir /var/lib/flaked
  runuser -u flaked -- flaked doctor --config /etc/flaked.yaml
  flaked doctor -o json | jq '.findings[] | select(.level != "ok")'`,
		Flags:  doctorFlags(),
		Action: runDoctor,
	}
}

// doctorFlags returns doctor's own flags and those flags of serve that decide what a node needs. A new flag of serve
// that does so belongs into this list, and into readDoctor.
func doctorFlags() []cli.Flag {
	flags := []cli.Flag{outputFlag(), &cli.DurationFlag{Name: "timeout", Usage: "how long each group of checks may " +
		"take", Value: 3 * time.Second}}
	for _, f := range serveFlags() {
		if slices.Contains([]string{"listen", "admin", "state-dir", "bootstrap", "heartbeat", "lease",
			"confirm-time", "release-on-exit", "layout", "advertise", "token-file", "tls-cert", "tls-key",
			"allow-open", "tls-client-ca", "peer-token-file", "peer-ca"}, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return slices.Concat(flags, zkFlags(localZK), hidden(recordFlags()...))
}

func runDoctor(c *cli.Context) error {
	cfg, err := readDoctor(c)
	if err != nil {
		return err
	}
	r := doctor.Run(c.Context, cfg)
	if err := c.Context.Err(); err != nil {
		return err
	}
	for i, f := range r.Findings {
		r.Findings[i].Text = words.Clean(words.PlainError(f.Text))
		r.Findings[i].Advice = words.Clean(words.PlainError(f.Advice))
	}
	err = printDoc(c, r, func(w io.Writer) error { return printFindings(w, r) })
	return errors.Join(err, doctorVerdict(r.Summary))
}

func readDoctor(c *cli.Context) (doctor.Config, error) {
	cfg := doctor.Config{
		Bootstrap: c.Bool("bootstrap"), ReleaseOnExit: c.Bool("release-on-exit"), Timeout: c.Duration("timeout"),
	}
	if cfg.Timeout <= 0 || cfg.Timeout > time.Minute {
		return cfg, usageError("--timeout must be more than 0s and at most 1m, not %s", cfg.Timeout)
	}
	var err error
	if cfg.StateDir, err = readStateDir(c); err != nil {
		return cfg, err
	}
	if cfg.Admin, err = readAdmin(c); err != nil {
		return cfg, err
	}
	for _, given := range c.StringSlice("listen") {
		network, address, err := dialog.SplitAddr(given)
		if err != nil {
			return cfg, usageError("--listen: %w", err)
		}
		cfg.Listen = append(cfg.Listen, [2]string{network, address})
	}
	if err = doctorAccess(c, &cfg); err != nil {
		return cfg, err
	}
	if cfg.ZK, err = readZK(c); err != nil {
		return cfg, err
	}
	settings, err := readClusterSettings(c)
	if err != nil {
		return cfg, err
	}
	wanted := node.Config{Settings: settings, Heartbeat: c.Duration("heartbeat"), Reserve: limits.DefaultReserve}
	cfg.Fits = func(cl coordinator.Cluster) error {
		if err := wanted.Fits(cl); err != nil {
			return errors.New(withAdvice(err))
		}
		return nil
	}
	return cfg, nil
}

// doctorAccess reads the flags that say who may ask this node, and how this node and the others ask each other.
func doctorAccess(c *cli.Context, cfg *doctor.Config) error {
	if err := checkAdvertised(c.String("advertise")); err != nil {
		return err
	}
	cfg.Address = dialog.PeerAddress(allAdvertised(c.StringSlice("listen"), c.String("advertise")))
	accessConfig, err := readServerAccess(c)
	cfg.Refuses = func(address string) error { return checkOpen(address, accessConfig, c.Bool("allow-open")) }
	load := sync.OnceValues(func() (*access.Server, error) { return access.Load(accessConfig) }) // a pipe is read once
	if accessConfig != (access.Config{}) {
		cfg.Credentials = func() error { _, err := load(); return err }
	}
	cfg.Peer = func() (creds dialog.Client, err error) {
		s, err := load()
		if err == nil {
			creds.Token, creds.TLS = s.Peer()
		}
		return creds, err
	}
	return err
}

func printFindings(w io.Writer, r doctor.Report) error {
	var t textTable
	for _, f := range r.Findings {
		text := f.Text
		if f.Advice != "" {
			text += ". " + f.Advice
		}
		t.add(string(f.Level), f.Check, withFullStop(text))
	}
	return t.print(w)
}

// doctorVerdict returns the error that sets the exit code. Its text counts failures and warnings.
func doctorVerdict(s doctor.Summary) error {
	text := words.Count(int64(s.Fail), "failure") + ", " + words.Count(int64(s.Warn), "warning")
	switch {
	case s.Unreachable:
		return exitError(exitUnreachable, "ZooKeeper cannot be reached: %s", text)
	case s.Fail > 0:
		return failure("%s", text)
	case s.Warn > 0:
		return exitError(exitDegraded, "%s", text)
	}
	return nil
}
