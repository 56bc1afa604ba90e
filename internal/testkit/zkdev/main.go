//go:build unix

// Command zkdev starts, stops and lists the ZooKeeper servers of one directory. It is the part
// of scripts/zk-dev.sh that deals with servers. The script checks the arguments, locks the
// directory, and finds Java and ZooKeeper's jars.
//
//	zkdev start DIR NODES PORT   prints the addresses; NODES 0 and PORT -1: as last time
//	zkdev stop DIR               prints how many servers it ended
//	zkdev status DIR             exits with 0 if all servers serve, 3 if none runs, else 1
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	code, err := 0, error(nil)
	switch args := os.Args[1:]; {
	case len(args) == 4 && args[0] == "start":
		nodes, _ := strconv.Atoi(args[2])
		port, _ := strconv.Atoi(args[3])
		err = start(args[1], nodes, port)
	case len(args) == 2 && args[0] == "stop":
		servers := serversIn(args[1], maxServers, 0) // even if the configuration is incomplete
		fmt.Println(len(servers) - len(stopped(servers)))
		err = end(servers)
	case len(args) == 2 && args[0] == "status":
		code, err = status(args[1])
	default:
		err = fmt.Errorf("unexpected arguments %q", args)
	}
	if err != nil {
		say("%v", err)
		code = 1
	}
	os.Exit(code)
}

// say prints a message for a person. stdout carries only results.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "zk-dev: "+format+"\n", args...) }

// status lists the servers and returns the exit code.
func status(dir string) (code int, err error) {
	servers, err := known(dir)
	if err != nil {
		return 1, err
	}
	if len(servers) == 0 {
		say("nothing was started in %s", dir)
		return 3, nil
	}
	const row = "%-6v %-16s %-8v %-14s %s\n"
	fmt.Printf(row, "SERVER", "ADDRESS", "PID", "MODE", "DIRECTORY")
	serving, running := 0, 0
	for _, s := range servers {
		mode, pid := "stopped", "-"
		if p := pidOf(s); p != 0 {
			mode, pid = s.Mode(), strconv.Itoa(p)
			running++
			if mode != "" {
				serving++
			} else {
				mode = "not serving"
			}
		}
		fmt.Printf(row, s.ID, s.Addr(), pid, mode, s.Dir)
	}
	switch {
	case serving == len(servers):
		return 0, nil
	case running > 0:
		return 1, nil
	}
	return 3, nil
}
