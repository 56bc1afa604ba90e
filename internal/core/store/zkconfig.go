package store

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// ZKConfig says where a cluster's records are and how to connect to them.
type ZKConfig struct {
	// Connect is "host:port,host:port/chroot", see ParseConnect. Required.
	Connect string

	// Cluster names the cluster. Its records are at <chroot>/flaked/<Cluster>. The name has
	// 1 to 64 characters: letters, digits, and after the first also . _ -. Required.
	Cluster string

	// SessionTimeout is requested from ZooKeeper, which limits it to between 2 and 20 of
	// its ticks. After a connection is lost, ZooKeeper keeps its ephemeral records for this
	// long. From 500 ms to 1 h. 0 means 6 s.
	SessionTimeout time.Duration

	// CallTimeout bounds a call, including its wait for a connection, unless the context
	// has an earlier deadline. 0 means half of SessionTimeout.
	CallTimeout time.Duration

	// DigestAuth is "user:password". "" means no authentication, and records that anybody
	// may change. Otherwise only this user may use the records created here, but see
	// WorldReadable. It may have several users, one a line. Each of them may use the records
	// created here, and the store may use the older records of each of them.
	DigestAuth string

	// WorldReadable lets others read the records created here, except those with
	// CreateOp.Secret. It has no effect without DigestAuth.
	WorldReadable bool

	// TLS secures the connections. nil means plain TCP. An empty ServerName
	// means the name of the host that is dialled.
	TLS *tls.Config

	// Logger gets one line per change of state, and go-zookeeper's own log at debug level.
	// nil means no log.
	Logger hclog.Logger
}

// withDefaults checks the configuration and fills in the defaults.
func (cfg ZKConfig) withDefaults() (ZKConfig, Connect, error) {
	connect, err := ParseConnect(cfg.Connect)
	if err != nil {
		return cfg, connect, err
	}
	if err := checkCluster(cfg.Cluster); err != nil {
		return cfg, connect, err
	}
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, 6*time.Second)
	if cfg.SessionTimeout < 500*time.Millisecond || cfg.SessionTimeout > time.Hour {
		return cfg, connect, fmt.Errorf("session timeout %v must be between 500ms and 1h", cfg.SessionTimeout)
	}
	cfg.CallTimeout = cmp.Or(cfg.CallTimeout, cfg.SessionTimeout/2)
	if cfg.CallTimeout < 0 {
		return cfg, connect, fmt.Errorf("call timeout %v must not be negative", cfg.CallTimeout)
	}
	for _, pair := range cfg.users() {
		if user, password, ok := strings.Cut(pair, ":"); !ok || user == "" || password == "" {
			// The error must not contain the value, which may be a password.
			return cfg, connect, errors.New("digest authentication must have the form user:password")
		}
	}
	cfg.Logger = cmp.Or(cfg.Logger, hclog.NewNullLogger())
	return cfg, connect, nil
}

// users returns the lines of DigestAuth.
func (cfg *ZKConfig) users() []string {
	if cfg.DigestAuth == "" {
		return nil
	}
	return strings.Split(cfg.DigestAuth, "\n")
}

// acl returns the ACL of the records created here. With authentication, others may read them if
// readable is set.
func (cfg *ZKConfig) acl(readable bool) []zk.ACL {
	if cfg.DigestAuth == "" {
		return zk.WorldACL(zk.PermAll)
	}
	// Use "auth" rather than a hash made here, because the server may be configured for a
	// digest other than SHA-1.
	acl := zk.AuthACL(zk.PermAll)
	if readable {
		acl = append(acl, zk.WorldACL(zk.PermRead)...)
	}
	return acl
}

// checkCluster returns an error unless name can be one part of a path.
func checkCluster(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("cluster name %q must have 1 to 64 characters", name)
	}
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && (r == '.' || r == '_' || r == '-'):
		default:
			return fmt.Errorf("cluster name %q must contain only letters, digits and, after the first character, . _ -",
				name)
		}
	}
	return nil
}
