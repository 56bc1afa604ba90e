package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "print new IDs",
		UsageText: "flaked get [flags] [N]",
		ArgsUsage: "[N]",
		Description: `Asks a node for N new IDs, one if N is left out, and prints them one a line: all
of them or none. The node limits N (10,000 unless it is told otherwise).

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
		return usageError("one number is expected, and there are %d arguments", c.NArg())
	case c.NArg() == 1:
		var err error
		if n, err = strconv.Atoi(c.Args().First()); err != nil || n < 1 {
			return usageError("how many? %q is not a whole number from 1 on", c.Args().First())
		}
	}
	request := "GET"
	if n > 1 {
		request = "GET " + strconv.Itoa(n)
	}
	ids, err := ask(c, request, n)
	var reply *replyError
	if errors.As(err, &reply) {
		return exitWith(exitFailure, "%w%s", err, cmp.Or(meaning(reply.code()), accessAdvice(reply)))
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		if v, err := strconv.ParseInt(id, 10, 64); err != nil || v < 0 {
			return exitWith(exitFailure, "%s answered %.60q, which is no ID: check that it is a flaked node", c.String("addr"), id)
		}
	}
	_, err = fmt.Fprintln(c.App.Writer, strings.Join(ids, "\n"))
	return err
}

// meaning returns what an error reply means and what to do, after a colon. It returns "" for a
// code that needs no explanation.
func meaning(code string) string {
	switch code {
	case "NOTREADY":
		return ": the node is starting or stopping, or may not use the time it would need; ask another, or again in a moment"
	case "CLOCK":
		return ": the node's clock went back, and it waits until that has caught up; ask another"
	case "FENCED":
		return ": the node lost its worker, and takes a new one when ZooKeeper lets it; ask another"
	case "EXHAUSTED":
		return ": the time field of the layout is used up; a new cluster with another layout is needed"
	case "BUSY":
		return ": the node is at a limit, which the reply names; ask another, or again in a moment"
	case "NOAUTH":
		return ": give a token that the node knows, with --token-file FILE or " + tokenEnv
	}
	return ""
}
