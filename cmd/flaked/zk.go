package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// zkConfig returns the configuration that zkFlags give. It checks the flags and reads the
// files that they name.
func zkConfig(c *cli.Context) (store.ZKConfig, error) {
	cfg := store.ZKConfig{
		Connect:        c.String("zk"),
		Cluster:        c.String("cluster"),
		SessionTimeout: sessionTimeout,
	}
	if cfg.Connect == "" {
		return cfg, usageError("--zk is required. Give --zk HOST:PORT, or set FLAKED_ZK")
	}
	var err error
	if cfg.DigestAuth, err = zkAuth(c); err != nil {
		return cfg, err
	}
	if cfg.TLS, err = clientTLS(c, "zk-tls"); err != nil {
		return cfg, err
	}
	if _, err := store.NewZK(cfg); err != nil { // NewZK dials nothing
		return cfg, usageError("%w", err)
	}
	return cfg, nil
}

// zkAuth returns lines of user:password from a file or the environment, "" for none. No flag
// takes them, as everybody on the machine can read arguments.
func zkAuth(c *cli.Context) (string, error) {
	const variable = "FLAKED_ZK_AUTH"
	where, text, err := secret(c, "zk-auth-file", variable)
	if err != nil {
		return "", err
	}
	auth := strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\r\n")
	if auth == "" && where != variable {
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

// clientTLS returns what the flags with this prefix say, nil for plain TCP.
func clientTLS(c *cli.Context, prefix string) (*tls.Config, error) {
	ca, cert, key, name := c.String(prefix+"-ca"), c.String(prefix+"-cert"), c.String(prefix+"-key"),
		c.String(prefix+"-server-name")
	wanted := ca+cert+key+name != ""
	if c.IsSet(prefix) && !c.Bool(prefix) && wanted {
		return nil, usageError("--%s is false, but other --%[1]s-... flags are given. Leave out --%[1]s=false or the "+
			"others", prefix)
	}
	if !c.Bool(prefix) && !wanted {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := readText("--"+prefix+"-ca", ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError("--%s-ca: there is no PEM certificate in %s", prefix, ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, usageError("--%s-cert and --%[1]s-key: only one is given. Give both or neither", prefix)
	}
	if cert != "" {
		certPEM, err := readText("--"+prefix+"-cert", cert)
		if err != nil {
			return nil, err
		}
		keyPEM, err := readText("--"+prefix+"-key", key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return nil, usageError("--%s-cert and --%[1]s-key: %w", prefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// withStore calls f with a connection to ZooKeeper, and closes the connection when f returns. Only tests change it.
var withStore = withZooKeeper

func withZooKeeper(c *cli.Context, f func(store.Store) error) error {
	cfg, err := zkConfig(c)
	if err != nil {
		return err
	}
	err = store.WithZK(c.Context, cfg, func(z *store.ZK) error { return f(z) })
	if errors.Is(err, coordinator.ErrNoCluster) {
		return fmt.Errorf("%w (--zk %s, --cluster %s)", err, cfg.Connect, cfg.Cluster)
	}
	return err
}
