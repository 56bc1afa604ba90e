package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/certtest"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// keyPair writes a certificate and its key to PEM files.
func keyPair(t *testing.T) (cert, key string) {
	pair := certtest.NewCA(t, "ca").Pair("client", time.Now().Add(time.Hour))
	return writeFile(t, "cert.pem", string(pair.Cert)), writeFile(t, "key.pem", string(pair.Key))
}

// zkOf returns the configuration that readZK makes of a command line.
func zkOf(t *testing.T, args ...string) (cfg store.ZKConfig, err error) {
	t.Helper()
	instead(t, "status", func(c *cli.Context) error {
		cfg, err = readZK(c)
		return nil
	}, append([]string{"--zk", "h"}, args...)...)
	return cfg, err
}

func TestZKConfig(t *testing.T) {
	cert, key := keyPair(t)
	cfg, err := zkOf(t)
	if err != nil || cfg.TLS != nil || cfg.DigestAuth != "" || cfg.Cluster != "default" ||
		cfg.SessionTimeout != sessionTimeout {
		t.Errorf("%+v %v", cfg, err)
	}
	cfg, err = zkOf(t, "--zk-auth-file", writeFile(t, "auth", "me:pass:word\r\nyou:x\r\n"), "--cluster", "eu")
	if err != nil || cfg.DigestAuth != "me:pass:word\nyou:x" || cfg.Cluster != "eu" {
		t.Errorf("%+v %v", cfg, err)
	}
	t.Setenv("FLAKED_ZK_AUTH", "me:hunter2")
	if cfg, err := zkOf(t); err != nil || cfg.DigestAuth != "me:hunter2" {
		t.Errorf("%+v %v", cfg, err)
	}
	t.Setenv("FLAKED_ZK_AUTH", "")
	cfg, err = zkOf(t, "--zk-tls")
	if err != nil || cfg.TLS == nil || cfg.TLS.RootCAs != nil || cfg.TLS.ServerName != "" ||
		cfg.TLS.InsecureSkipVerify {
		t.Errorf("%+v %v", cfg.TLS, err)
	}
	cfg, err = zkOf(t, "--zk-tls-ca", cert, "--zk-tls-cert", cert, "--zk-tls-key", key, "--zk-tls-server-name",
		"zk.internal")
	if err != nil || cfg.TLS == nil || cfg.TLS.RootCAs == nil || len(cfg.TLS.Certificates) != 1 ||
		cfg.TLS.ServerName != "zk.internal" {
		t.Errorf("%+v %v", cfg.TLS, err)
	}
}

func TestNewLogger(t *testing.T) {
	for _, row := range []struct {
		args, want string
		lines      int
	}{
		{"", `"@message":"hello"`, 1}, // not a terminal
		{"--log-format json", `"@level":"info"`, 1},
		{"--log-format text", "[INFO]  flaked: hello: n=1\n", 1},
		{"--log-level debug", "details", 2},
		{"--log-level WARN", "", 0},
		{"--log-level off", "", 0},
	} {
		var out bytes.Buffer
		instead(t, "serve", func(c *cli.Context) error {
			log, closeLog, err := newLogger(c, &out)
			if err == nil {
				log.Info("hello", "n", 1)
				log.Debug("details")
				closeLog()
			}
			return err
		}, strings.Fields(row.args)...)
		if got := out.String(); !strings.Contains(got, row.want) || strings.Count(got, "\n") != row.lines ||
			strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q, want %q", row.args, got, row.want)
		}
	}
}
