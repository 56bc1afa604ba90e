package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "print new IDs",
		ArgsUsage: "[N]",
		Description: `Asks a node for N new IDs (default: 1, at most 10,000), and prints them, one per line.

Examples:
  flaked get
  flaked get 100 --addr ids.example.com:7609
  flaked get --addr ids.example.com --tls-ca ca.pem --token-file token
  flaked get 3 | flaked decode`,
		Flags:  nodeFlags(3 * time.Second),
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
		if n, err = strconv.Atoi(c.Args().First()); err != nil || !within(n, mostNumbers) {
			return usageError("N must be a whole number from 1 to %d, not %q", mostNumbers, c.Args().First())
		}
	}
	return printNumbers(c, "GET", "an ID", n, func(reply *ids.ReplyError) string {
		return cmp.Or(codeAdvice(reply.Code), accessAdvice(reply))
	})
}

// elsewhere is the advice for a refusal that may be this node's, and may pass.
const elsewhere = ". Ask another node, or try again in a moment"

// codeAdvice returns what an error reply means and what to do, after a full stop. It returns ""
// for a code that needs no explanation.
func codeAdvice(code ids.Code) string {
	if replies.ClassOf(code).Passes {
		return elsewhere
	}
	switch code {
	case ids.WRONGNODE:
		return ": --addr, or the name of the cluster: --cluster"
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
