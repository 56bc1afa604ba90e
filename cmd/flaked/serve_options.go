package main

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// options are serve's flags, read and checked.
type options struct {
	listenOn  []string
	allowOpen bool
	guard     access.Config
	unix      unixOptions
	admin     string
	// adminAsked means that --admin was given, so its address is not the default.
	adminAsked bool
	adminTLS   bool
	advertise  string
	stateDir   string
	dev        bool
	drainTime  time.Duration
	node       flaked.Config
}

// serveFlags returns the flags of serve. The hidden ones are for `flaked cluster init`. serve reads them
// too, because one file or environment serves all commands: --bootstrap creates the cluster with
// them, and a cluster that has other values is refused. Two clusters with the same datacenter
// would make the same IDs.
func serveFlags() []cli.Flag {
	own := []cli.Flag{
		&cli.StringSliceFlag{Name: "listen", Value: cli.NewStringSlice(defaultAddr),
			Usage: "serve IDs on `HOST:PORT` or unix:/PATH, instead of the default. Repeatable"},
		&cli.StringFlag{Name: "admin", Value: defaultAdmin,
			Usage: "serve probes, metrics and the node's status over HTTP on `HOST:PORT`, or off"},
		&cli.StringFlag{Name: "advertise", DefaultText: "the host's name",
			Usage: "`HOST` (address or name) that others use for listeners on all interfaces"},
		stateDirFlag(),
		&cli.StringFlag{Name: "name", DefaultText: "the host's name", Usage: "display name of the node"},
		&cli.BoolFlag{Name: "bootstrap", Usage: "create the cluster if ZooKeeper has none of this name"},
		&cli.DurationFlag{Name: "heartbeat", Value: limits.DefaultHeartbeat,
			Usage: "report to ZooKeeper every `TIME`, at most half the confirming time"},
		leaseFlag("the cluster's, 24h in a new one"),
		confirmTimeFlag("the cluster's, 2 heartbeats + 6s in a new one"),
		&cli.BoolFlag{Name: "release-on-exit", Usage: "release the worker at a clean stop, for pods without a " +
			"lasting disk"},
		layoutFlag("the cluster's, leaf in a new one"),
		&cli.DurationFlag{Name: "drain-time", Value: 10 * time.Second,
			Usage: "`DURATION` for which flaked drain lets open connections go on"},
		&cli.BoolFlag{Name: "dev", Usage: "run without ZooKeeper, with all state in memory. For development only"},
	}
	replaced := in(callFlags, &cli.BoolFlag{Name: "zk-replaced", DisableDefaultText: true,
		Usage: "this ZooKeeper replaces for good the one that the state directory was used with before"})
	return slices.Concat(own, guardFlags(), zkFlags(""), logFlags(), replaced, hidden(recordFlags()...))
}

// serveOptions reads the flags of serve. It returns an error for the first flag that is wrong.
func serveOptions(c *cli.Context) (o options, wrong error) {
	check := func(err error) {
		if wrong == nil {
			wrong = err
		}
	}
	refuse := func(format string, a ...any) { check(usageError(format, a...)) }
	o = options{
		listenOn: c.StringSlice("listen"), allowOpen: c.Bool("allow-open"), admin: c.String("admin"),
		adminAsked: c.IsSet("admin"), advertise: c.String("advertise"),
		stateDir: c.String("state-dir"), dev: c.Bool("dev"),
		drainTime: c.Duration("drain-time"),
	}
	if c.String("zk") == "" && !o.dev {
		refuse("--zk is required. Give --zk HOST:PORT (or FLAKED_ZK), start a ZooKeeper with scripts/zk-dev.sh " +
			"start, or try `flaked serve --dev`")
	}
	if o.dev && c.String("zk") != "" && !fromEnvironment(c, "zk") {
		refuse("--dev runs without ZooKeeper. Leave out --zk or --dev")
	}
	if o.admin == adminOff {
		o.admin = ""
	}
	check(checkAdvertised(o.advertise))
	if o.drainTime < 0 {
		refuse("--drain-time must not be negative, not %s", o.drainTime)
	}
	var err error
	o.guard, err = guardConfig(c)
	check(err)
	o.adminTLS = o.guard.Cert != "" && o.admin != "" && !isLoopback(o.admin)
	o.unix, err = parseUnixOptions(c.String("unix-mode"), c.String("unix-group"))
	check(err)
	settings, err := clusterSettings(c)
	check(err)
	host, _ := os.Hostname() // a label: "" will do
	name := cmp.Or(c.String("name"), host)
	if strings.ContainsAny(name, " \t\r\n") {
		refuse("--name %q must not contain blanks", name)
	}
	o.node = flaked.Config{
		Cluster: c.String("cluster"), Bootstrap: c.Bool("bootstrap"), Settings: settings, InMemory: o.dev,
		StateDir: o.stateDir,
		Name:     name, Version: version,
		ZooKeeperReplaced: c.Bool("zk-replaced"),
		Heartbeat:         c.Duration("heartbeat"), StartTimeout: forTests("START_TIMEOUT", time.Minute),
		Reserve:        forTests("RESERVE", limits.DefaultReserve),
		ReleaseOnClose: c.Bool("release-on-exit"),
	}
	if o.dev {
		o.node.StateDir = ""
	} else if o.stateDir == "" {
		refuse("--state-dir: no home directory found. Give --state-dir DIRECTORY")
	}
	return o, wrong
}

// clusterSettings returns the cluster settings that flags give, nil for each that no flag gives.
func clusterSettings(c *cli.Context) (node.Settings, error) {
	var s node.Settings
	if c.IsSet("layout") {
		layout, err := worker.ParseLayout(c.String("layout"))
		if err != nil {
			return s, usageError("--layout: %v", err)
		}
		if err := usableNow(layout, time.Now()); err != nil {
			return s, usageError("--layout %s: %v", c.String("layout"), err)
		}
		s.Layout = &layout
	}
	if c.IsSet("datacenter") {
		s.Datacenter = new(c.Int64("datacenter"))
	}
	if c.IsSet("lease") {
		s.Lease = new(c.Duration("lease"))
	}
	if c.IsSet("confirm-time") {
		s.ConfirmTime = new(c.Duration("confirm-time"))
	}
	if c.IsSet("on-rollback") {
		v, err := timeguard.ParseRollbackPolicy(c.String("on-rollback"))
		if err != nil {
			return s, usageError("--on-rollback: %v", err)
		}
		s.OnRollback = &v
	}
	if c.IsSet("borrow") {
		s.Borrow = new(c.Duration("borrow"))
	}
	if c.IsSet("sequence-start") {
		v, err := worker.ParseSequenceStart(c.String("sequence-start"))
		if err != nil {
			return s, usageError("--sequence-start: %v", err)
		}
		s.SequenceStart = &v
	}
	if c.IsSet("segment-start") {
		v, err := worker.ParseSegmentStart(c.String("segment-start"))
		if err != nil {
			return s, usageError("--segment-start: %v", err)
		}
		s.SegmentStart = &v
	}
	return s, nil
}

// forTests returns the duration of a variable that the tests of this repository set, because they
// cannot wait for the time that is fixed for everybody else. It returns fixed if there is none.
func forTests(name string, fixed time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv("FLAKED_TEST_" + name)); err == nil {
		return d
	}
	return fixed
}

func (o options) adminHint() string {
	if o.admin == "" {
		return "this is not an HTTP port, and the node has none: --admin HOST:PORT sets one"
	}
	return "the HTTP admin port is " + o.adminURL(o.admin)
}
