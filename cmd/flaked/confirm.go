package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/urfave/cli/v2"
)

// confirmFlag returns --confirm, which confirm reads. It is for the command line only, as
// nobody would read the words in a file or in the environment.
func confirmFlag() cli.Flag {
	return in(callFlags, &cli.StringFlag{Name: "confirm",
		Usage: "`WORDS` that confirm the command. Without them, it prints which words it needs"})[0]
}

// confirm returns nil if the operator has confirmed what is about to be done: by typing words
// on a terminal, or by giving them in --confirm. The words name what the command is about to
// change, so that they confirm nothing else.
func confirm(c *cli.Context, risk, words string) error {
	if given := c.String("confirm"); given == words {
		return nil
	} else if given != "" {
		return usageError("--confirm %q does not match. Nothing was changed. Use --confirm '%s'", given, words)
	}
	if !isTerminal(c.App.Reader) {
		return usageError("%s. Nothing was changed. To go on, add --confirm '%s'", risk, words)
	}
	typed, err := question(c, fmt.Sprintf("%s.\nType %s to go on: ", risk, words))
	if err != nil {
		return err
	}
	if typed != words {
		return exitWith(exitFailure, "the typed words do not match %q. Nothing was changed", words)
	}
	return nil
}

// question asks on the terminal and returns the line that is typed, trimmed.
func question(c *cli.Context, text string) (string, error) {
	fmt.Fprint(c.App.ErrWriter, text)
	type reply struct {
		line string
		err  error
	}
	replies := make(chan reply, 1)
	go func() { // ends with the process at the latest: a read cannot be interrupted
		line, err := bufio.NewReader(c.App.Reader).ReadString('\n')
		replies <- reply{line, err}
	}()
	select {
	case <-c.Context.Done():
		return "", c.Context.Err()
	case r := <-replies:
		if r.err == io.EOF {
			r.err = nil
		}
		return strings.TrimSpace(r.line), r.err
	}
}

// whoami returns USER@HOST, which records keep beside what an operator did.
func whoami() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
