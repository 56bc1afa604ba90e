package main

import (
	"cmp"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/poll"
)

// flagOrNil returns the value that a flag gives a setting, nil if the flag is not set.
func flagOrNil[T any](c *cli.Context, setting string, value func(string) T) *T {
	if !c.IsSet(setting) {
		return nil
	}
	return new(value(setting))
}

// defaultAddr is the default of --listen and of --addr.
const defaultAddr = "127.0.0.1:" + dialog.DefaultPort

// readNode returns the node of --addr.
func readNode(c *cli.Context) (poll.Target, error) {
	creds, err := readClientAccess(c)
	if name := c.String("cluster"); name != "" { // else there is nothing to compare the only connection with
		creds.Cluster, err = dialog.Want(name), cmp.Or(err, checkClusterFlag(name))
	}
	node := poll.Target{Access: creds, Addr: c.String("addr"), Timeout: c.Duration("timeout")}
	if err = cmp.Or(err, checkAddrFlag(node.Addr)); err == nil && node.Timeout <= 0 {
		err = usageError("--timeout must be positive, not %s", node.Timeout)
	}
	return node, err
}

// readAddrs returns the addresses of --addr, each once.
func readAddrs(c *cli.Context) (addrs []string, err error) {
	for _, addr := range c.StringSlice("addr") {
		if err := checkAddrFlag(addr); err != nil {
			return nil, err
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// readAsker returns the asker that surveyAccessFlags give.
func readAsker(c *cli.Context) (*poll.Asker, error) {
	token, err := readToken(c)
	if err != nil {
		return nil, err
	}
	a := &poll.Asker{Token: token, Everywhere: c.String("token-file") != "", Advice: accessAdvice}
	a.Host, _ = os.Hostname()
	a.TLS, a.TLSErr = readTLS(c, "tls")
	return a, nil
}

// readStateDir returns --state-dir, or an error if it has neither a value nor a default.
func readStateDir(c *cli.Context) (string, error) {
	dir := c.String("state-dir")
	if dir == "" {
		return "", usageError("--state-dir: no home directory found. Give --state-dir DIRECTORY")
	}
	return dir, nil
}
