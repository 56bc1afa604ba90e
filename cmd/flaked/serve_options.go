package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/access"
)

// options are serve's flags, read and checked. Nothing changes them.
type options struct {
	listenAddrs  []string
	allowOpen    bool
	accessConfig access.Config
	unixOptions  unixOptions
	adminAddr    string // "" for none
	// adminGiven means that --admin was given, so its address is not the default.
	adminGiven bool
	adminTLS   bool
	advertise  string
	drainTime  time.Duration
	stateDir   string
	// nodeConfig lacks the log, the trace and the addresses: see process.config.
	nodeConfig node.Config
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
		&cli.BoolFlag{Name: "dev", Usage: "run without ZooKeeper, with all state in memory. Sequences are created at their " +
			"first use. For development only"},
	}
	replaced := inCategory(categoryCommandLineOnly, &cli.BoolFlag{Name: "zk-replaced", DisableDefaultText: true,
		Usage: "this ZooKeeper replaces for good the one that the state directory was used with before"})
	return slices.Concat(own, serverAccessFlags(), zkFlags(""), logFlags(), replaced, hidden(recordFlags()...))
}

// readOptions reads the flags of serve. It returns an error for the first flag that is wrong.
func readOptions(c *cli.Context) (o options, wrong error) {
	check := func(err error) {
		if wrong == nil {
			wrong = err
		}
	}
	refuse := func(format string, a ...any) { check(usageError(format, a...)) }
	o = options{
		listenAddrs: c.StringSlice("listen"), allowOpen: c.Bool("allow-open"),
		adminGiven: c.IsSet("admin"), advertise: c.String("advertise"),
		drainTime: c.Duration("drain-time"),
	}
	dev := c.Bool("dev")
	if c.String("zk") == "" && !dev {
		refuse("--zk is required. Give --zk HOST:PORT (or FLAKED_ZK), or try `flaked serve --dev`, which needs " +
			"no ZooKeeper")
	}
	if dev && c.String("zk") != "" && !fromEnvironment(c, "zk") {
		refuse("--dev runs without ZooKeeper. Leave out --zk or --dev")
	}
	var err error
	o.adminAddr, err = readAdmin(c)
	check(err)
	check(checkAdvertised(o.advertise))
	if o.drainTime < 0 {
		refuse("--drain-time must not be negative, not %s", o.drainTime)
	}
	o.accessConfig, err = readServerAccess(c)
	check(err)
	o.adminTLS = o.accessConfig.Cert != "" && o.adminAddr != "" && !dialog.IsLoopback(o.adminAddr)
	o.unixOptions, err = parseUnixOptions(c.String("unix-mode"), c.String("unix-group"))
	check(err)
	o.nodeConfig = node.Config{
		Cluster: c.String("cluster"), Bootstrap: c.Bool("bootstrap"), InMemory: dev,
		Labels: coordinator.Labels{Name: c.String("name"), Version: version}, Heartbeat: c.Duration("heartbeat"),
		ZooKeeperReplaced: c.Bool("zk-replaced"), ReleaseOnExit: c.Bool("release-on-exit"),
		StartTimeout: startTimeout, Reserve: reserveAhead,
	}
	o.nodeConfig.Settings, err = readClusterSettings(c)
	check(err)
	if !dev {
		o.stateDir, err = readStateDir(c)
		check(err)
	}
	return o, wrong
}
