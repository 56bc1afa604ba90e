package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// variableOf returns the name of a flag's environment variable.
//
// No flag may be called --port, --service-host or --service-port: Kubernetes
// sets FLAKED_PORT and the like in every pod beside a service named flaked.
func variableOf(flag string) string {
	return "FLAKED_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// variableToRead returns variableOf(flag), or "" if that variable is set but empty: a compose file passes on an unset
// variable as an empty one.
func variableToRead(flag string) string {
	name := variableOf(flag)
	if v, set := os.LookupEnv(name); set && v == "" {
		return ""
	}
	return name
}

// Categories of flags in a command's help.
const (
	categoryZooKeeper = "ZooKeeper"
	categoryLog       = "log"
	categorySecurity  = "security"
	// categoryCommandLineOnly is for flags of one call. Neither the environment nor a file may set them for all calls.
	categoryCommandLineOnly = "command-line-only"
)

// inCategory puts flags into a category.
func inCategory(category string, flags ...cli.Flag) []cli.Flag {
	return setField(flags, "Category", category)
}

// hidden leaves flags out of the help.
func hidden(flags ...cli.Flag) []cli.Flag { return setField(flags, "Hidden", true) }

// setField sets a field that the library's flags have in common, but share no method for. It returns the flags.
func setField(flags []cli.Flag, name string, value any) []cli.Flag {
	for _, f := range flags {
		reflect.ValueOf(f).Elem().FieldByName(name).Set(reflect.ValueOf(value))
	}
	return flags
}

// localZK is the default of --zk for commands that change nothing: the address that `make run`
// uses. Commands that change or remove something have no default. One that only adds may have it.
const localZK = "127.0.0.1:2181"

// zkFlags returns the flags that readZK reads. Without a fallback, --zk is required.
func zkFlags(fallback string) []cli.Flag {
	return inCategory(categoryZooKeeper, append([]cli.Flag{
		&cli.StringFlag{Name: "zk", Usage: "ZooKeeper's servers, `HOST:PORT,.../CHROOT`", Value: fallback},
		&cli.StringFlag{Name: "cluster", Usage: "the cluster's `NAME`", Value: "default"},
		&cli.StringFlag{Name: "zk-auth-file", Usage: "`FILE` with user:password on each line for digest " +
			"authentication (the text itself: FLAKED_ZK_AUTH)"},
	}, tlsFlags("zk-tls", "use TLS. Any of the flags below implies it", "the server's")...)...)
}

// fromEnvironment reports whether the environment gives the value of a flag.
func fromEnvironment(c *cli.Context, name string) bool {
	given := os.Getenv(variableToRead(name))
	return given != "" && c.String(name) == given
}

// logFlags returns the flags that newLogger reads.
func logFlags() []cli.Flag {
	return inCategory(categoryLog,
		&cli.StringFlag{Name: "log-level", Usage: "`LEVEL`: trace, debug, info, warn, error or off", Value: "info"},
		&cli.StringFlag{Name: "log-format", Value: "auto",
			Usage: "`FORMAT`: text, json, or auto for text on a terminal and in the journal, JSON elsewhere"})
}

func outputFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT`: table or json", Value: "table",
		Action: func(c *cli.Context, f string) error {
			if f != "table" && f != "json" {
				return withHelp(c, usageError("--output: %q is not table or json", f))
			}
			return nil
		},
	}
}

func asJSON(c *cli.Context) bool { return c.String("output") == "json" }

func addrFlag() cli.Flag {
	return &cli.StringFlag{Name: "addr", Usage: "the node to ask, `HOST:PORT` or unix:/PATH", Value: defaultAddr,
		DefaultText: "the first address of listen, or " + defaultAddr}
}

// nodeFlags returns the flags that readNode reads.
func nodeFlags(timeout time.Duration) []cli.Flag {
	own := []cli.Flag{addrFlag(), nodeClusterFlag(), &cli.DurationFlag{Name: "timeout", Value: timeout,
		Usage: "how long to wait for the whole reply"}}
	return append(own, clientAccessFlags()...)
}

// nodeClusterFlag returns the --cluster of commands that read no ZooKeeper.
func nodeClusterFlag() cli.Flag {
	return &cli.StringFlag{Name: "cluster", DefaultText: "any", Usage: "the `NAME` or UUID of the node's cluster. " +
		"The command uses no answer of a node of another one"}
}

// surveyAccessFlags returns the flags that readAsker reads.
func surveyAccessFlags() []cli.Flag {
	return inCategory(categorySecurity, append([]cli.Flag{
		tokenFileFlag("`FILE` with a token for the nodes. It is sent to all of them, encrypted only with --tls. " +
			"FLAKED_TOKEN gives the token itself, which is sent only to nodes on this machine, to those of --addr, " +
			"and with --tls-ca to all"),
	}, tlsFlags("tls", "use TLS to the nodes, except over unix sockets. Any of the flags below implies it",
		"the node's")...)...)
}

// clientAccessFlags returns the flags that readClientAccess reads.
func clientAccessFlags() []cli.Flag {
	return inCategory(categorySecurity, append([]cli.Flag{
		tokenFileFlag("`FILE` with tokens. The first one is sent to the node (the token itself: FLAKED_TOKEN)"),
	}, tlsFlags("tls", "use TLS, except on unix sockets. Any of the flags below implies it", "the node's")...)...)
}

// tlsFlags returns the flags that readTLS reads. whose names the server, as in "the node's".
func tlsFlags(name, usage, whose string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true},
		&cli.StringFlag{Name: name + "-ca", Usage: "PEM `FILE` with the authorities to trust, instead of the system's"},
		&cli.StringFlag{Name: name + "-cert", Usage: "PEM `FILE` with the client's certificate"},
		&cli.StringFlag{Name: name + "-key", Usage: "PEM `FILE` with the key of that certificate"},
		&cli.StringFlag{Name: name + "-server-name", Usage: "`NAME` to expect in " + whose +
			" certificate, instead of the host's"},
	}
}

// serverAccessFlags returns the flags that protect a node. readServerAccess and readOptions read them.
func serverAccessFlags() []cli.Flag {
	return inCategory(categorySecurity,
		&cli.BoolFlag{Name: "allow-open",
			Usage: "allow --listen addresses that other machines can reach, without a token and without TLS"},
		tokenFileFlag("`FILE` with tokens, one per line. Clients must send one of them. next=order:*,user behind a "+
			"token limits it to these sequences (the tokens themselves: FLAKED_TOKEN)"),
		&cli.StringFlag{Name: "tls-cert", Usage: "use TLS on TCP: PEM `FILE` with the certificate, then the " +
			"intermediate ones"},
		&cli.StringFlag{Name: "tls-key", Usage: "PEM `FILE` with the key of that certificate"},
		&cli.StringFlag{Name: "tls-client-ca", Usage: "require client certificates: PEM `FILE` with the authorities " +
			"to trust"},
		&cli.StringFlag{Name: "peer-token-file", DefaultText: "the first token for all sequences in --token-file",
			Usage: "`FILE` with the token for other nodes, which this one asks for ordered sequences"},
		&cli.StringFlag{Name: "peer-ca", DefaultText: "the system's",
			Usage: "PEM `FILE` with the authorities of other nodes' certificates"},
		&cli.StringFlag{Name: "unix-mode", Usage: "who may connect to unix sockets: `MODE` as for chmod, in octal",
			Value: defaultUnixMode},
		&cli.StringFlag{Name: "unix-group", Usage: "the group of unix sockets, `NAME` or number",
			DefaultText: "the node's own"})
}

func tokenFileFlag(usage string) cli.Flag { return &cli.StringFlag{Name: "token-file", Usage: usage} }

func stateDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "state-dir", Usage: "the node's state `DIRECTORY`, on a local disk",
		Value:       defaultStateDir(),
		DefaultText: "/var/lib/flaked for root, ~/.local/state/flaked for others"}
}

// defaultStateDir returns "" if there is no home directory.
func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/flaked"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the specification says to ignore relative paths
		return filepath.Join(dir, "flaked")
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "state", "flaked")
}
