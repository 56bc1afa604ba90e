package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// readZK returns the configuration that zkFlags give. It checks the flags and reads the
// files that they name.
func readZK(c *cli.Context) (store.ZKConfig, error) {
	cfg := store.ZKConfig{
		Connect:        c.String("zk"),
		Cluster:        c.String("cluster"),
		SessionTimeout: sessionTimeout,
	}
	if cfg.Connect == "" {
		return cfg, usageError("--zk is required. Give --zk HOST:PORT, or set FLAKED_ZK")
	}
	var err error
	if cfg.DigestAuth, err = readZKAuth(c); err != nil {
		return cfg, err
	}
	if cfg.TLS, err = readTLS(c, "zk-tls"); err != nil {
		return cfg, err
	}
	if _, err := store.NewZK(cfg); err != nil { // NewZK dials nothing
		return cfg, usageError("%w", err)
	}
	return cfg, nil
}

// zkAuthEnv names the environment variable that holds the lines of --zk-auth-file.
const zkAuthEnv = "FLAKED_ZK_AUTH"

// readZKAuth returns lines of user:password from a file or the environment, "" for none. No flag
// takes them, as everybody on the machine can read arguments.
func readZKAuth(c *cli.Context) (string, error) {
	where, text, err := readSecret(c, "zk-auth-file", zkAuthEnv)
	if err != nil {
		return "", err
	}
	auth := strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\r\n")
	if auth == "" && where != zkAuthEnv {
		return "", usageError("%s is empty. Write a line user:password into it", where)
	}
	return auth, checkAuth(where, auth)
}

// checkAuth returns an error unless auth is "" or lines of user:password. The error says where
// auth is from and does not quote it.
func checkAuth(where, auth string) error {
	for line := range strings.SplitSeq(auth, "\n") {
		user, password, ok := strings.Cut(line, ":")
		if auth != "" && (!ok || user == "" || password == "" || strings.Contains(line, "\r")) {
			return usageError("%s: expected user:password on each line", where)
		}
	}
	return nil
}

// withStore calls f with a connection to ZooKeeper, and closes the connection when f returns. Only tests change it.
var withStore = withZooKeeper

func withZooKeeper(c *cli.Context, f func(store.Store) error) error {
	cfg, err := readZK(c)
	if err != nil {
		return err
	}
	err = store.WithZK(c.Context, cfg, func(z *store.ZK) error { return f(z) })
	if errors.Is(err, coordinator.ErrNoCluster) {
		return fmt.Errorf("%w (--zk %s, --cluster %s)", err, cfg.Connect, cfg.Cluster)
	}
	return err
}
