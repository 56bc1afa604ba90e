package zkstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// ZKConfig is where a cluster's records are and how to get at them.
type ZKConfig struct {
	// Connect is "host:port,host:port/chroot", see ParseConnect. Required.
	Connect string

	// Cluster names the cluster; its records are at <chroot>/flaked/<Cluster>.
	// Letters, digits, and after the first also . _ -, at most 64. Required.
	Cluster string

	// SessionTimeout is asked of ZooKeeper, which limits it to 2 to 20 of its
	// ticks. A client that has had no connection for as long is given up for a
	// new one. 0 means 6 s; at least 500 ms.
	SessionTimeout time.Duration

	// CallTimeout bounds a call whose context has no earlier deadline. It
	// includes the wait for a connection. 0 means half of SessionTimeout.
	CallTimeout time.Duration

	// DigestAuth is "user:password". "" means not to authenticate, and records
	// that anybody may change; otherwise only this user may do anything with
	// the records made here.
	DigestAuth string

	// WorldReadable lets others read the records made here. Without DigestAuth
	// it means nothing.
	WorldReadable bool

	// TLS secures the connections. nil means plain TCP. An empty ServerName
	// means the name of the host that is dialled.
	TLS *tls.Config

	// Logger gets one line per change of state, and the library's at debug.
	// nil means none.
	Logger hclog.Logger
}

// withDefaults checks the configuration and fills in what was left out.
func (cfg ZKConfig) withDefaults() (ZKConfig, Connect, error) {
	connect, err := ParseConnect(cfg.Connect)
	if err != nil {
		return cfg, connect, err
	}
	if err := checkCluster(cfg.Cluster); err != nil {
		return cfg, connect, err
	}
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = 6 * time.Second
	}
	if cfg.SessionTimeout < 500*time.Millisecond || cfg.SessionTimeout > time.Hour {
		return cfg, connect, fmt.Errorf("zkstore: session timeout %v is not between 500ms and 1h", cfg.SessionTimeout)
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = cfg.SessionTimeout / 2
	}
	if cfg.CallTimeout < 0 {
		return cfg, connect, fmt.Errorf("zkstore: call timeout %v is negative", cfg.CallTimeout)
	}
	if user, password, ok := strings.Cut(cfg.DigestAuth, ":"); cfg.DigestAuth != "" && (!ok || user == "" || password == "") {
		return cfg, connect, errors.New("zkstore: digest authentication is not of the form user:password") // and not shown
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return cfg, connect, nil
}

// acl is for every record made here.
func (cfg *ZKConfig) acl() []zk.ACL {
	if cfg.DigestAuth == "" {
		return zk.WorldACL(zk.PermAll)
	}
	// "auth" and not our own hash: the server may be set to another than SHA-1.
	acl := zk.AuthACL(zk.PermAll)
	if cfg.WorldReadable {
		acl = append(acl, zk.WorldACL(zk.PermRead)...)
	}
	return acl
}
