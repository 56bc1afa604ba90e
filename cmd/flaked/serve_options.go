package main

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked"
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
	adminTLS   bool
	advertise  string
	stateDir   string
	dev        bool
	maxBatch   int
	engine     lineproto.Engine
	loops      int
	spin       time.Duration
	drainTime  time.Duration
	node       flaked.Config
}

func serveFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "listen", EnvVars: env("listen"), Value: cli.NewStringSlice(defaultAddr), Usage: "serve IDs on `HOST:PORT` or unix:/PATH, instead of the default. Repeatable"},
		&cli.StringFlag{Name: "admin", EnvVars: env("admin"), Value: defaultAdmin, Usage: "serve probes, metrics and the node's status over HTTP on `HOST:PORT`, or off"},
		&cli.BoolFlag{Name: "admin-tls", EnvVars: env("admin-tls"), DisableDefaultText: true, Usage: "serve the admin port over HTTPS, with the certificate of --tls-cert. With --tls-client-ca, all but probes and metrics needs a client certificate"},
		&cli.BoolFlag{Name: "admin-pprof", EnvVars: env("admin-pprof"), DisableDefaultText: true, Usage: "also serve profiles of the process on the admin port: /debug/pprof/"},
		&cli.StringFlag{Name: "advertise", EnvVars: env("advertise"), DefaultText: "the host's name", Usage: "`HOST` (address or name) that others use for listeners on all interfaces"},
		stateDirFlag(),
		&cli.StringFlag{Name: "name", EnvVars: env("name"), DefaultText: "the host's name", Usage: "display name of the node"},
		&cli.BoolFlag{Name: "bootstrap", EnvVars: env("bootstrap"), Usage: "create the cluster if ZooKeeper has none of this name"},
		&cli.DurationFlag{Name: "heartbeat", EnvVars: env("heartbeat"), Value: limits.DefaultHeartbeat, Usage: "report to ZooKeeper every `TIME`, at most half the confirming time"},
		&cli.DurationFlag{Name: "lease", EnvVars: env("lease"), DefaultText: "the cluster's, 24h in a new one", Usage: "the longest lease: for so long a node may serve without ZooKeeper, and its worker stays reserved after it disconnects"},
		confirmTimeFlag("the cluster's, 2 heartbeats + 6s in a new one"),
		&cli.DurationFlag{Name: "reserve", EnvVars: env("reserve"), Value: limits.DefaultReserve, Usage: "how far the reserved bound on the disk is ahead of the clock. A restart after a crash waits for this long at most"},
		&cli.BoolFlag{Name: "release-on-exit", EnvVars: env("release-on-exit"), Usage: "release the worker at a clean stop, for pods without a lasting disk"},
		layoutFlag("the cluster's, leaf in a new one"),
		&cli.Int64Flag{Name: "datacenter", EnvVars: env("datacenter"), DefaultText: "the cluster's, 0 in a new one", Usage: "the datacenter field of IDs, if the layout has one"},
		onRollbackFlag("the cluster's, leaf in a new one"), borrowFlag("the cluster's, 0s in a new one"),
		&cli.StringFlag{Name: "segment-start", EnvVars: env("segment-start"), Value: "zero", Usage: "the first segment of a tick, if the layout has the field: zero, or random (as in PearFlower)"},
		&cli.StringFlag{Name: "sequence-start", EnvVars: env("sequence-start"), Value: "random", Usage: "the first sequence value of a tick: random (below 100, as in Leaf), zero, or carry-on (where the last one ended)"},
		&cli.IntFlag{Name: "max-batch", EnvVars: env("max-batch"), Value: 10_000, Usage: "the most IDs in one request"},
		&cli.StringFlag{Name: "engine", EnvVars: env("engine"), Value: "auto", Usage: "how connections are served: loops (epoll, Linux only), goroutines (one per connection), or auto (loops on Linux, goroutines elsewhere)"},
		&cli.IntFlag{Name: "loops", EnvVars: env("loops"), Value: 1, Usage: "event loops for each --listen. Raise it if one loop uses a whole core and other cores are idle"},
		&cli.DurationFlag{Name: "spin", EnvVars: env("spin"), Usage: "poll for requests this long before sleeping. 30us halves the latency, but keeps a core busy"},
		&cli.DurationFlag{Name: "drain-time", EnvVars: env("drain-time"), Value: 10 * time.Second, Usage: "`DURATION` for which flaked drain lets open connections go on"},
		&cli.DurationFlag{Name: "start-timeout", EnvVars: env("start-timeout"), Value: time.Minute, Usage: "give up if the node needs ZooKeeper to start and gets no answer for this long. 0: never"},
		&cli.BoolFlag{Name: "zk-replaced", DisableDefaultText: true, Usage: "this ZooKeeper replaces for good the one that the state directory was used with before. Command line only"},
		&cli.BoolFlag{Name: "dev", EnvVars: env("dev"), Usage: "run without ZooKeeper, with all state in memory. For development only"},
	}, slices.Concat(guardFlags(), zkFlags(""), logFlags())...)
}

// serveOptions reads the flags of serve. It returns an error for each flag that is wrong.
func serveOptions(c *cli.Context) (o options, wrong []error) {
	refuse := func(format string, a ...any) { wrong = append(wrong, usageError(format, a...)) }
	check := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	o = options{
		listenOn: c.StringSlice("listen"), allowOpen: c.Bool("allow-open"), admin: c.String("admin"), adminAsked: c.IsSet("admin"), adminPprof: c.Bool("admin-pprof"), adminTLS: c.Bool("admin-tls"), advertise: c.String("advertise"),
		stateDir: c.String("state-dir"), dev: c.Bool("dev"), maxBatch: c.Int("max-batch"),
		loops: c.Int("loops"), spin: c.Duration("spin"), drainTime: c.Duration("drain-time"),
	}
	if c.String("zk") == "" && !o.dev {
		refuse("--zk is required. Give --zk HOST:PORT (or FLAKED_ZK), start a ZooKeeper with scripts/zk-dev.sh start, or try `flaked serve --dev`")
	}
	if o.dev && c.String("zk") != "" && c.String("zk") != os.Getenv(envName("zk")) {
		refuse("--dev runs without ZooKeeper. Leave out --zk or --dev")
	}
	if o.maxBatch < 1 || o.maxBatch > 1_000_000 {
		refuse("--max-batch must be 1 to 1000000, not %d", o.maxBatch)
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
	if o.adminTLS && o.guard.Cert == "" {
		refuse("--admin-tls needs --tls-cert and --tls-key. Give them, or leave out --admin-tls")
	}
	o.unix, err = parseUnixOptions(c.String("unix-mode"), c.String("unix-group"))
	check(err)
	o.engine, err = oneOf(c, "engine", "auto, loops or goroutines", engines)
	check(err)
	if o.engine == lineproto.EventLoops && runtime.GOOS != "linux" {
		refuse("--engine loops needs Linux. Leave it out")
	}
	if o.loops < 1 || o.loops > lineproto.MaxLoops {
		refuse("--loops must be 1 to %d, not %d", lineproto.MaxLoops, o.loops)
	}
	if o.spin < 0 || o.spin > lineproto.MaxSpin {
		refuse("--spin must be 0 to %v, not %v", lineproto.MaxSpin, o.spin)
	}
	settings, err := clusterSettings(c)
	check(err)
	start, err := sequenceStart(c)
	check(err)
	segment, err := segmentStart(c)
	check(err)
	host, _ := os.Hostname() // a label: "" will do
	name := cmp.Or(c.String("name"), host)
	if strings.ContainsAny(name, " \t\r\n") {
		refuse("--name %q must not contain blanks", name)
	}
	o.node = flaked.Config{
		Cluster: c.String("cluster"), Bootstrap: c.Bool("bootstrap"), Settings: settings, InMemory: o.dev, StateDir: o.stateDir,
		Name: name, Version: version,
		ZooKeeperReplaced: c.Bool("zk-replaced"),
		Heartbeat:         c.Duration("heartbeat"), StartTimeout: c.Duration("start-timeout"), Reserve: c.Duration("reserve"),
		ReleaseOnClose: c.Bool("release-on-exit"), SequenceStart: start, SegmentStart: segment,
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
	return s, nil
}

func segmentStart(c *cli.Context) (worker.SegmentStart, error) {
	return oneOf(c, "segment-start", "zero or random", map[string]worker.SegmentStart{"zero": worker.SegmentZero, "random": worker.SegmentRandom})
}

func sequenceStart(c *cli.Context) (worker.SequenceStart, error) {
	return oneOf(c, "sequence-start", "random, zero or carry-on", map[string]worker.SequenceStart{
		"random": worker.StartRandom, "zero": worker.StartZero, "carry-on": worker.StartCarryOn,
	})
}

// oneOf returns what the word in a flag stands for. words lists the words for people.
func oneOf[T any](c *cli.Context, flag, words string, values map[string]T) (T, error) {
	v, ok := values[c.String(flag)]
	if !ok {
		return v, usageError("--%s must be %s, not %q", flag, words, c.String(flag))
	}
	return v, nil
}

var engines = map[string]lineproto.Engine{"auto": lineproto.Auto, "loops": lineproto.EventLoops, "goroutines": lineproto.Goroutines}

func (o options) adminHint() string {
	if o.admin == "" {
		return "this is not an HTTP port, and the node has none: --admin HOST:PORT sets one"
	}
	return "the HTTP admin port is " + o.adminURL(o.admin)
}
