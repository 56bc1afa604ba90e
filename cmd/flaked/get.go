package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "print new IDs",
		ArgsUsage: "[N]",
		Description: `Asks a node for N new IDs (default: 1), and prints them, one per line. More than 10,000
are fetched and printed in batches. If a batch fails, the error says how many were
printed, and exits with 1 or 3.

Examples:
  flaked get
  flaked get 100 --addr ids.example.com:7609
  flaked get --addr ids.example.com --tls-ca ca.pem --token-file token
  flaked get 3 | flaked decode`,
		Flags:  append([]cli.Flag{addrFlag(), timeoutFlag(3 * time.Second)}, accessFlags()...),
		Action: get,
	}
}

func get(c *cli.Context) error {
	n := 1
	switch {
	case c.NArg() > 1:
		return usageError("expected one N, got %d arguments", c.NArg())
	case c.NArg() == 1:
		var err error
		if n, err = strconv.Atoi(c.Args().First()); err != nil || n < 1 {
			return usageError("N must be a whole number of at least 1, not %q", c.Args().First())
		}
	}
	return printBatches(c, n, batches{what: "an ID", request: func(n int) string {
		if n == 1 {
			return "GET"
		}
		return "GET " + strconv.Itoa(n)
	}, advice: func(reply *ids.ReplyError) string { return cmp.Or(meaning(reply.Code), accessAdvice(reply)) }})
}

// meaning returns what an error reply means and what to do, after a full stop. It returns ""
// for a code that needs no explanation.
func meaning(code ids.Code) string {
	switch code {
	case ids.NOTREADY, ids.CLOCK, ids.FENCED, ids.BUSY:
		return ". Ask another node, or try again in a moment"
	case ids.EXHAUSTED:
		return ". Create a cluster with another layout"
	case ids.NOPERM:
		return ". Give another token with --token-file FILE or " + tokenEnv + ", or add the sequence to next= behind " +
			"this token in the nodes' token file"
	case ids.NOAUTH, ids.WRONGPASS:
		return ". Give a token that the node knows, with --token-file FILE or " + tokenEnv
	}
	return ""
}
