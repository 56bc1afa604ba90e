package main

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// options are serve's flags, read and checked.
type options struct {
	listenOn  []string
	allowOpen bool
	guard     credentials.Config
	unix      unixOptions
	admin     string
	// adminAsked means that --admin was given, so its address is not the default.
	adminAsked bool
	adminPprof bool
	advertise  string
	stateDir   string
	dev        bool
	maxBatch   int
	engine     lineproto.Engine
	workers    int // number of nodes
	loops      int
	spin       time.Duration
	node       node.Config
}

// maxWorkers is more than a machine has use for. Each worker costs an fdatasync a
// second and a heartbeat.
const maxWorkers = 64

func serveFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "listen", EnvVars: env("listen"), Value: cli.NewStringSlice(defaultAddr), Usage: "serve IDs on `HOST:PORT` or unix:/PATH, and not on the default; repeatable"},
		&cli.StringFlag{Name: "admin", EnvVars: env("admin"), Value: defaultAdmin, Usage: "serve probes, metrics and what the node knows of itself over HTTP on `HOST:PORT`; off for nowhere"},
		&cli.BoolFlag{Name: "admin-pprof", EnvVars: env("admin-pprof"), DisableDefaultText: true, Usage: "serve profiles of the process there, too: /debug/pprof/"},
		&cli.StringFlag{Name: "advertise", EnvVars: env("advertise"), DefaultText: "the host's name", Usage: "where others find what listens on all addresses: an address, or a `HOST`'s name"},
		stateDirFlag(),
		&cli.StringFlag{Name: "name", EnvVars: env("name"), DefaultText: "the host's name", Usage: "what people shall call this node"},
		&cli.BoolFlag{Name: "bootstrap", EnvVars: env("bootstrap"), Usage: "make the cluster if ZooKeeper has none of this name"},
		&cli.DurationFlag{Name: "heartbeat", EnvVars: env("heartbeat"), Value: limits.DefaultHeartbeat, Usage: "report to ZooKeeper every `TIME`; at most half the settling time"},
		&cli.DurationFlag{Name: "lease", EnvVars: env("lease"), DefaultText: "the cluster's, 24h in a new one", Usage: "how long a node may live without ZooKeeper, and its worker is kept for it"},
		&cli.DurationFlag{Name: "settle", EnvVars: env("settle"), DefaultText: "the cluster's, 2 heartbeats + 6s in a new one", Usage: "how long a newcomer waits for an owner that ZooKeeper has forgotten"},
		&cli.DurationFlag{Name: "reserve", EnvVars: env("reserve"), Value: limits.DefaultReserve, Usage: "keep a bound this far ahead on the disk; what a restart after a crash waits at most"},
		&cli.BoolFlag{Name: "release-on-exit", EnvVars: env("release-on-exit"), Usage: "give the worker back at a clean stop: for pods whose disk does not outlive them"},
		layoutFlag("the cluster's, leaf in a new one"),
		&cli.Int64Flag{Name: "datacenter", EnvVars: env("datacenter"), DefaultText: "the cluster's, 0 in a new one", Usage: "the datacenter field of IDs, where the layout has one"},
		onRollbackFlag("the cluster's, leaf in a new one"), borrowFlag("the cluster's, 0s in a new one"),
		&cli.StringFlag{Name: "segment-start", EnvVars: env("segment-start"), Value: "zero", Usage: "the segment that a tick begins in, where the layout has one: zero, or random (as PearFlower)"},
		&cli.StringFlag{Name: "sequence-start", EnvVars: env("sequence-start"), Value: "random", Usage: "where the sequence begins in a millisecond: random (below 100, as Leaf), zero, or carry-on"},
		&cli.IntFlag{Name: "workers", EnvVars: env("workers"), Value: 1, Usage: "hold so many worker ids, to pass the ceiling of one: 4 make 16 million IDs a second in the usual layout"},
		&cli.IntFlag{Name: "max-batch", EnvVars: env("max-batch"), Value: 10_000, Usage: "the most IDs of one request"},
		&cli.StringFlag{Name: "engine", EnvVars: env("engine"), Value: "auto", Usage: "how connections are served: loops (of epoll, Linux), goroutines (one each), or auto: loops where there are"},
		&cli.IntFlag{Name: "loops", EnvVars: env("loops"), Value: 1, Usage: "event loops for each --listen; more help when one fills its core and there are cores to spare"},
		&cli.DurationFlag{Name: "spin", EnvVars: env("spin"), Usage: "look for requests this long before sleeping: at 30us half the latency, and a core that is always busy"},
		&cli.DurationFlag{Name: "start-timeout", EnvVars: env("start-timeout"), Value: time.Minute, Usage: "give up when ZooKeeper is needed to start and does not answer for so long; 0: never"},
		&cli.BoolFlag{Name: "zk-replaced", DisableDefaultText: true, Usage: "this ZooKeeper has taken the place of the one that the state directory was used with, which is gone for good. On the command line alone"},
		&cli.BoolFlag{Name: "dev", EnvVars: env("dev"), Usage: "try it without ZooKeeper: everything in memory, for development only"},
	}, slices.Concat(guardFlags(), zkFlags(""), logFlags())...)
}

func serveOptions(c *cli.Context) (options, error) {
	o := options{
		listenOn: c.StringSlice("listen"), allowOpen: c.Bool("allow-open"), admin: c.String("admin"), adminAsked: c.IsSet("admin"), adminPprof: c.Bool("admin-pprof"), advertise: c.String("advertise"),
		stateDir: c.String("state-dir"), dev: c.Bool("dev"), maxBatch: c.Int("max-batch"),
		workers: c.Int("workers"), loops: c.Int("loops"), spin: c.Duration("spin"),
	}
	if c.String("zk") == "" && !o.dev {
		return o, usageError("no ZooKeeper: give --zk HOST:PORT (or FLAKED_ZK), start one with scripts/zk-dev.sh start, or try `flaked serve --dev`")
	}
	if o.dev && c.String("zk") != "" && c.String("zk") != os.Getenv(envName("zk")) {
		return o, usageError("--dev runs without ZooKeeper: leave out --zk, or --dev")
	}
	if o.maxBatch < 1 || o.maxBatch > 1_000_000 {
		return o, usageError("--max-batch %d: 1 to 1000000", o.maxBatch)
	}
	if o.admin == adminOff {
		o.admin = ""
	}
	if err := checkAdvertised(o.advertise); err != nil {
		return o, err
	}
	if o.workers < 1 || o.workers > maxWorkers {
		return o, usageError("--workers %d: 1 to %d", o.workers, maxWorkers)
	}
	var err error
	if o.guard, err = guardConfig(c); err != nil {
		return o, err
	}
	if o.unix, err = parseUnixOptions(c.String("unix-mode"), c.String("unix-group")); err != nil {
		return o, err
	}
	var ok bool
	if o.engine, ok = engines[c.String("engine")]; !ok {
		return o, usageError("--engine %q: it is auto, loops or goroutines", c.String("engine"))
	}
	if o.engine == lineproto.EventLoops && runtime.GOOS != "linux" {
		return o, usageError("--engine loops needs Linux: leave it out")
	}
	if o.loops < 1 || o.loops > lineproto.MaxLoops {
		return o, usageError("--loops %d: 1 to %d", o.loops, lineproto.MaxLoops)
	}
	if o.spin < 0 || o.spin > lineproto.MaxSpin {
		return o, usageError("--spin %v: 0 to %v", o.spin, lineproto.MaxSpin)
	}
	settings, err := clusterSettings(c)
	if err != nil {
		return o, err
	}
	start, err := sequenceStart(c.String("sequence-start"))
	if err != nil {
		return o, err
	}
	segment, err := segmentStart(c.String("segment-start"))
	if err != nil {
		return o, err
	}
	host, _ := os.Hostname() // a label: "" will do
	name := c.String("name")
	if name == "" {
		name = host
	}
	if strings.ContainsAny(name, " \t\r\n") {
		return o, usageError("--name %q: no blanks", name)
	}
	o.node = node.Config{
		Cluster: c.String("cluster"), Bootstrap: c.Bool("bootstrap") || o.dev, Settings: settings,
		Labels: coordinator.Labels{
			Name: name, Host: host, PID: os.Getpid(),
			Address: allAdvertised(o.listenOn, o.advertise), Version: version,
		},
		ZooKeeperReplaced: c.Bool("zk-replaced"),
		Heartbeat:         c.Duration("heartbeat"), StartTimeout: c.Duration("start-timeout"), Reserve: c.Duration("reserve"),
		ReleaseOnExit: c.Bool("release-on-exit"), SequenceStart: start, SegmentStart: segment,
	}
	if o.dev {
		none := time.Duration(0)
		o.node.Settings.Settle, o.node.InMemory = &none, true // no other node to wait for
	}
	return o, nil
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
		v := c.Int64("datacenter")
		s.Datacenter = &v
	}
	if c.IsSet("lease") {
		v := c.Duration("lease")
		s.Lease = &v
	}
	if c.IsSet("settle") {
		v := c.Duration("settle")
		s.Settle = &v
	}
	if c.IsSet("on-rollback") {
		v, err := timeguard.ParseRollbackPolicy(c.String("on-rollback"))
		if err != nil {
			return s, usageError("--on-rollback: %v", err)
		}
		s.OnRollback = &v
	}
	if c.IsSet("borrow") {
		v := c.Duration("borrow")
		s.Borrow = &v
	}
	return s, nil
}

func segmentStart(s string) (worker.SegmentStart, error) {
	switch s {
	case "zero":
		return worker.SegmentZero, nil
	case "random":
		return worker.SegmentRandom, nil
	}
	return 0, usageError("--segment-start %q: it is zero or random", s)
}

func sequenceStart(s string) (worker.SequenceStart, error) {
	for name, start := range map[string]worker.SequenceStart{
		"random": worker.StartRandom, "zero": worker.StartZero, "carry-on": worker.StartCarryOn,
	} {
		if s == name {
			return start, nil
		}
	}
	return 0, usageError("--sequence-start %q: it is random, zero or carry-on", s)
}

var engines = map[string]lineproto.Engine{"auto": lineproto.Auto, "loops": lineproto.EventLoops, "goroutines": lineproto.Goroutines}

func (o options) adminHint() string {
	if o.admin == "" {
		return "this is no HTTP port; --admin HOST:PORT gives a node one"
	}
	return "the HTTP admin port is " + o.admin
}
