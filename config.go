package flaked

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/host/logqueue"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// Config configures Open and Start. ZooKeeper is required, unless InMemory is set. The comment
// of every other field says what its zero value means.
type Config struct {
	// ZooKeeper has the servers and an optional chroot: "host:port,host:port/chroot". The port
	// defaults to 2181.
	ZooKeeper string
	// ZooKeeperAuth has lines of user:password, which the node authenticates with. Empty
	// means none.
	ZooKeeperAuth string
	// ZooKeeperTLS encrypts the connection to ZooKeeper. nil means plain TCP.
	ZooKeeperTLS *tls.Config
	// SessionTimeout is the session timeout that the node asks ZooKeeper for, 500 ms to 1 h. 0 means 6 s.
	SessionTimeout time.Duration
	// Cluster is the name of the cluster. IDs are unique within a cluster. Empty means
	// "default".
	Cluster string
	// Bootstrap creates the cluster if ZooKeeper has none of this name. If Bootstrap is false,
	// Open returns an error instead. That reveals a wrong name, and a ZooKeeper that has lost
	// its data.
	Bootstrap bool
	// Settings are the settings that the cluster must have: the layout of IDs, the longest
	// lease and others. Open fails if the cluster has others.
	Settings Settings

	// StateDir is the directory in which the node keeps its identity and bounds, about 10 KB.
	// It must be on a local disk: NFS, SMB, FUSE, 9p and Ceph are refused. It is created if it
	// is missing. Only one running Node can use it. A relative path counts from the working
	// directory at Open. Empty means a temporary directory, which Close removes. Then the node
	// is a new one at each start, needs ZooKeeper to start, and releases its worker at Close.
	StateDir string
	// Reserve is the time that the node reserves in StateDir: it keeps a bound there that is so
	// far ahead of the clock. 100 ms to below 10 s. After a crash the next start may wait for
	// that time. 0 means 3 s.
	Reserve time.Duration
	// Heartbeat is the time between two reports to ZooKeeper, 10 ms or more, and at most half
	// of the cluster's confirming time. 0 means 3 s.
	Heartbeat time.Duration
	// StartTimeout limits how long a start waits for a ZooKeeper that does not answer. The node
	// ends with an error then, or up to 3 s later. 0 means that only the context of Open limits
	// the wait.
	StartTimeout time.Duration
	// ReleaseOnClose makes Close release the worker, for programs that do not start again:
	// short jobs, and pods without a lasting disk. If StateDir is empty, Close always does.
	ReleaseOnClose bool
	// ZooKeeperReplaced says that this ZooKeeper has taken the place of the one that StateDir
	// was used with before, for good. See docs/troubleshooting.md before you set it.
	ZooKeeperReplaced bool

	// InMemory runs without ZooKeeper, with all state in memory. IDs are unique only within
	// this Node, and it has no named sequences. It is for tests and for trying flaked.
	// ZooKeeper and StateDir must be empty.
	InMemory bool

	// Name is the display name of the node in status reports, without blanks. Empty means the
	// host's name.
	Name string
	// Address is the address at which the program serves IDs with LineProtocol, for status
	// reports and for other nodes, which ask there for values of ordered sequences. Several are separated by commas.
	// Empty means none.
	Address string
	// Admin is the address of an HTTP server whose root is the handler of package admin:
	// host:port, or https://host:port. Status reports ask there for the state of the node.
	// Empty means none.
	Admin string
	// PeerAccess returns the token ("" for none) and the TLS configuration (nil for plain TCP) with which the node asks
	// other nodes for values of ordered sequences. It is called for each new connection, so that both may change. nil
	// means neither.
	PeerAccess func() (token string, config *tls.Config)
	// Version is the program's release, for status reports. Empty means the release of flaked.
	//
	// Name, Address, Admin and Version have at most 4,096 bytes.
	Version string

	// Logger gets the log of the node. nil means that nothing is logged. Its handler may call the
	// Node, except Close, which waits for the handler.
	Logger *slog.Logger
	// HCLogger gets the log instead of Logger, in programs that use go-hclog. It must not call
	// the Node, and must not block.
	HCLogger hclog.Logger

	// settings are Settings as the node reads them.
	settings node.Settings
	// trace is for the tests of flaked: see inside.SetTrace.
	trace coordinator.Trace
}

// ConfigError means that a Config is wrong. Nothing was opened.
type ConfigError struct{ err error }

func (e *ConfigError) Error() string { return "flaked: " + e.err.Error() }
func (e *ConfigError) Unwrap() error { return e.err }

// ErrLocked is in a StateDirError if another process or Node has the directory open.
var ErrLocked = localcache.ErrLocked

// StateDirError means that a state directory cannot be used. Err is or wraps ErrLocked, or an error of the file system.
type StateDirError struct {
	Dir string
	Err error
}

func (e *StateDirError) Error() string {
	return fmt.Sprintf("flaked: state directory %s: %v", e.Dir, e.Err)
}
func (e *StateDirError) Unwrap() error { return e.Err }

// withDefaults returns the Config with its defaults, or an error.
func (c Config) withDefaults() (Config, error) {
	c.Cluster = cmp.Or(c.Cluster, "default")
	c.Name, c.Version = cmp.Or(c.Name, hostname()), cmp.Or(c.Version, moduleVersion())
	c.ReleaseOnClose = c.ReleaseOnClose || c.StateDir == ""
	switch {
	case c.InMemory && (c.ZooKeeper != "" || c.StateDir != ""):
		return c, errors.New("Config.InMemory is without ZooKeeper and a disk: leave out ZooKeeper and StateDir")
	case !c.InMemory && c.ZooKeeper == "":
		return c, errors.New("Config.ZooKeeper is empty. Give \"host:port\", or set InMemory for a test")
	case c.StartTimeout < 0:
		return c, fmt.Errorf("Config.StartTimeout is %s, must not be negative. 0 means no limit", c.StartTimeout)
	case strings.ContainsAny(c.Name, " \t\r\n"):
		return c, fmt.Errorf("Config.Name %q must not contain blanks", c.Name)
	}
	if err := c.checkLabels(); err != nil {
		return c, err
	}
	if c.StateDir != "" {
		dir, err := filepath.Abs(c.StateDir) // the program may change its working directory
		if err != nil {
			return c, fmt.Errorf("Config.StateDir %q is relative, and the working directory is unknown: %w. Give an "+
				"absolute path", c.StateDir, err)
		}
		c.StateDir = dir
	}
	var err error
	if c.settings, err = c.Settings.parsed(); err != nil {
		return c, err
	}
	if c.InMemory {
		c.Bootstrap, c.settings.ConfirmTime = true, new(time.Duration(0)) // no other node to wait for
	}
	return c, nil
}

// hostname returns the name of this host, or "", which will do for a label.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// maxLabel is the most bytes of a label. The record of each worker has all of them, and each heartbeat
// writes that record.
const maxLabel = 4096

// checkLabels returns an error for a label that is too long.
func (c Config) checkLabels() error {
	for _, label := range []struct{ field, text string }{
		{"Config.Name", c.Name}, {"Config.Address", c.Address}, {"Config.Admin", c.Admin},
		{"Config.Version", c.Version},
	} {
		if len(label.text) > maxLabel {
			return fmt.Errorf("%s has %d bytes, must have %d at most", label.field, len(label.text), maxLabel)
		}
	}
	return nil
}

// node returns the configuration of the node, without its connections.
func (c Config) node() node.Config {
	return node.Config{
		Cluster: c.Cluster, Bootstrap: c.Bootstrap, Settings: c.settings, InMemory: c.InMemory,
		ZooKeeperReplaced: c.ZooKeeperReplaced,
		Labels: coordinator.Labels{
			Name: c.Name, Host: hostname(), PID: os.Getpid(), Address: c.Address, Admin: c.Admin, Version: c.Version,
		},
		BootID: timeguard.BootID(), Heartbeat: c.Heartbeat, StartTimeout: c.StartTimeout, Reserve: c.Reserve,
		ReleaseOnExit: c.ReleaseOnClose, Trace: c.trace,
	}
}

// moduleVersion returns the release of this module as the program was built with it.
func moduleVersion() string {
	const path, unknown = "github.com/flaked/flaked", "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return cmp.Or(strings.Trim(m.Version, "()"), unknown)
		}
	}
	return unknown
}

// logger returns the logger that Config asks for. stop passes on the lines that wait, and ends the
// goroutine behind the logger. The logger never writes to a standard stream.
func (c Config) logger() (l hclog.Logger, stop func()) {
	switch {
	case c.HCLogger != nil:
		return c.HCLogger, func() {}
	case c.Logger == nil:
		return hclog.NewNullLogger(), func() {}
	}
	level := hclog.Info
	if c.Logger.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "flaked", Level: level, Output: io.Discard})
	sink := newSlogSink(c.Logger)
	intercept.RegisterSink(sink)
	return intercept, func() { sink.lines.Close(closeLogTime) }
}

// closeLogTime is the longest time that Close waits for a slow log handler.
const closeLogTime = 5 * time.Second

// slogSink passes lines of hclog on to slog. A handler may call the node: the queue calls it
// without the node's locks.
type slogSink struct {
	lines *logqueue.Queue[line]
}

// line is a record of the logger with this name.
type line struct {
	name   string
	record slog.Record
}

func newSlogSink(to *slog.Logger) slogSink {
	return slogSink{logqueue.New(func(l line) {
		ctx, h := context.Background(), to.With("logger", l.name).Handler()
		if h.Enabled(ctx, l.record.Level) {
			_ = h.Handle(ctx, l.record)
		}
	}, func(lost int64) {
		to.Warn("the log handler was too slow, lines are missing", "lines_lost", lost)
	})}
}

// Accept is part of hclog.SinkAdapter. It never blocks.
func (s slogSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 { // a format with its arguments
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	r := slog.NewRecord(time.Now(), slogLevel(level), msg, 0)
	r.Add(args...)
	s.lines.Put(line{name, r})
}

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace, hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	}
	return slog.LevelInfo
}
