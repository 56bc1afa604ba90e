package flaked

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
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
	// Address is the address at which the program serves IDs with package lineproto, for status
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
	// Name, Address and Admin have at most 4,096 bytes.

	// Logger gets the log of the node. nil means that nothing is logged, and nobody learns why a start waits. Its
	// handler runs in a goroutine of its own. While it blocks, the node goes on, and lines beyond 1,024 are dropped and
	// counted. It may call the Node, except Close, which waits for the handler.
	Logger *slog.Logger
}

// Settings are settings of a cluster, in the words of `flaked cluster init`. An empty or nil field accepts what the
// cluster has. If Config.Bootstrap creates the cluster, the field then has its default.
type Settings struct {
	// Layout is the layout of IDs, as worker.ParseLayout reads it: "twitter", "leaf,epoch=2026-01-01". The default is
	// "leaf".
	Layout string
	// Datacenter is the number of the datacenter in IDs, if the layout has that field. The default is 0.
	Datacenter *int64
	// Lease is the longest lease, 1 s or more: for so long a node may serve without ZooKeeper. The default is 24 h.
	Lease *time.Duration
	// ConfirmTime is how long a new node waits for a holder of its worker that ZooKeeper lost, 410 ms to 1 h. The
	// default is two heartbeats and 6 s.
	ConfirmTime *time.Duration
	// OnRollback says what a node does when its clock goes back: "leaf", "refuse", "wait=TIME", "coast=TIME" or
	// "rollback-bits". The default is "rollback-bits" if the layout has such a field, otherwise "leaf".
	OnRollback string
	// Borrow is how far ahead of the clock a burst may make IDs, in whole milliseconds. The default is 0.
	Borrow *time.Duration
	// SequenceStart is where the sequence field of an ID begins in a tick: "random", "zero" or "carry-on". The default
	// is "random".
	SequenceStart string
	// SegmentStart is the segment that a tick begins in, if the layout has that field: "zero" or "random". The default
	// is "zero".
	SegmentStart string
}

// app returns the configuration of the node with its connections. The caller must call its Ended if it makes no node.
func (c Config) app() (made app.Config, err error) {
	switch {
	case c.InMemory && (c.ZooKeeper != "" || c.StateDir != ""):
		err = errors.New("Config.InMemory is without ZooKeeper and a disk: leave out ZooKeeper and StateDir")
	case !c.InMemory && c.ZooKeeper == "":
		err = errors.New("Config.ZooKeeper is empty. Give \"host:port\", or set InMemory for a test")
	}
	made = app.Config{
		Node: node.Config{
			Cluster: cmp.Or(c.Cluster, "default"), Bootstrap: c.Bootstrap, InMemory: c.InMemory,
			ZooKeeperReplaced: c.ZooKeeperReplaced,
			Labels:            coordinator.Labels{Name: c.Name, Address: c.Address, Admin: c.Admin},
			Heartbeat:         c.Heartbeat, StartTimeout: c.StartTimeout, Reserve: c.Reserve,
			ReleaseOnExit: c.ReleaseOnClose,
		},
		ZooKeeper: store.ZKConfig{Connect: c.ZooKeeper, SessionTimeout: c.SessionTimeout, DigestAuth: c.ZooKeeperAuth,
			TLS: c.ZooKeeperTLS},
		StateDir: c.StateDir, PeerAccess: c.PeerAccess,
	}
	if err == nil {
		made.Node.Settings, err = c.Settings.parsed()
	}
	made.Ended = func() {}
	if err == nil && c.Logger != nil {
		made.Node.Logger, made.Ended = app.Slog(c.Logger)
	}
	return made, err
}

// parsed returns the settings as the node reads them. The error is a *node.ValueError.
func (s Settings) parsed() (to node.Settings, err error) {
	to = node.Settings{Datacenter: s.Datacenter, Lease: s.Lease, ConfirmTime: s.ConfirmTime, Borrow: s.Borrow}
	text := func(t string) *string {
		if t == "" {
			return nil
		}
		return &t
	}
	err = node.Texts{
		Layout: text(s.Layout), OnRollback: text(s.OnRollback),
		SequenceStart: text(s.SequenceStart), SegmentStart: text(s.SegmentStart),
	}.Read(&to)
	return to, err
}

// fieldName returns the field of a setting: "on-rollback" is Config.Settings.OnRollback.
func fieldName(s node.Setting) string {
	var name string
	for word := range strings.SplitSeq(string(s), "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	if _, ok := reflect.TypeFor[Settings]().FieldByName(name); ok {
		return "Config.Settings." + name
	}
	return "Config." + name
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

// outward returns an error as this package promises it: a setting has the name of its field.
func outward(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*app.StateDirError](err); ok {
		return (*StateDirError)(e)
	}
	return node.Named(err, fieldName)
}
