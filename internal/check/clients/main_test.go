// Package clients tests the clients of flaked: package client, and those in clients/, which are in other languages. A
// client is called through its driver, a program in its own tests. The comment of command driver, which is Go's, says
// what a driver reads and writes.
//
// Cases runs clients/cases.jsonl: each case has fake nodes that follow a script, calls, and what they must give. A
// client must do the same in each language, so the cases are the specification of all clients:
//
//	go test ./internal/check/clients -run Cases -args \
//	  -driver 'python=bin/clients-python/bin/python clients/python/tests/driver.py sync'
//
// -driver may be repeated. Its name is go, java, python, asyncio or node: a case can leave a client out by this name.
// The command runs in the root of the repository. One case: -run 'Cases/.*/.*/deadline'. With -v, what the driver
// writes to stderr is shown. RealNodes lets the clients call real nodes under faults.
//
// docs/clients.md says what users see of the rules. These stand in the cases alone:
//
//   - Requests are WORKER, WORKER cluster, GET, GET n, NEXT name, NEXT name n, RANGE name n, NEXT name key, AUTH token
//     and READY, with LF, and n of 2 or more. Wrong arguments are errors before anything is sent.
//   - A reply is a decimal number without leading zeros, for RANGE two of them, or one line -CODE text. Anything else,
//     a line of more than 4,096 bytes, and bytes that no request waits for close the connection.
//   - A node has one connection for IDs and one for sequences. AUTH and WORKER go out in one write with the first
//     request. If a connection was idle and ends without a byte of reply, the request is sent again to the same node.
//   - The pause of a node that has failed is 20 ms, doubling to 1 s, at random within 50 % of it. Further errors of
//     requests that were under way when the node failed change nothing. After the pause, if another node is healthy, a
//     probe (AUTH, READY) on a connection of its own decides. If none is healthy, calls go to the node whose pause ends
//     first.
//   - A node may be silent for the node timeout, and while another is healthy for half of the time that the call has
//     left, 25 ms at least. A request that had less than the node timeout makes the node slow: it is asked after
//     healthy ones and before failed ones, without a pause.
//   - WRONGNODE counts as WRONGPASS does. The error names both clusters. A client without a cluster takes the UUID of
//     the first answer. Replies wait until the other nodes have said their cluster, 500 ms and half of the call's time
//     at most.
//   - A refusal of a sequence without reason= is a failure of the node. Before a call asks all nodes again, it waits
//     for max(20 ms, min(retry_after_ms, 1 s)).
//   - A stock of prefetched values is filled when half or less is left, by one request at a time, and not while nobody
//     calls. The age counts from the request. A call that finds the stock empty asks for itself, before the request for
//     the stock. If values of the stock come first, the call takes the lowest, and the stock keeps the call's: so the
//     values of a client rise (in Go mostly: it has two connections). The stock is thrown away in a copy of the
//     process, and if the wall clock and the monotonic clock have moved apart by more than the age.
//   - A closed client has no connections, threads or tasks. Waiting calls and later ones fail with the error for it.
package clients

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// root is the directory of the repository, where drivers run.
const root = "../../.."

// drivers are the commands of drivers by the names of their clients, from the flag -driver.
var drivers = make(driverFlag)

type driverFlag map[string]string

func (d driverFlag) String() string { return "" }

func (d driverFlag) Set(text string) error {
	name, command, ok := strings.Cut(text, "=")
	if !ok || name == "" || command == "" {
		return fmt.Errorf("it must be NAME=COMMAND, such as python=clients/python/tests/driver.py")
	}
	d[name] = command
	return nil
}

func TestMain(m *testing.M) {
	flag.Var(drivers, "driver", "NAME=COMMAND of a client's driver (default: the Go client's)")
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The tests mostly wait. The command line may say otherwise.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	if len(drivers) == 0 || drivers["go"] == "build" {
		dir, err := os.MkdirTemp("", "flaked-driver-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program := filepath.Join(dir, "driver")
		build := []string{"build", "-o", program}
		if race.Enabled {
			build = append(build, "-race")
		}
		if out, err := exec.Command("go", append(build, "./driver")...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the Go client's driver: %v\n%s", err, out)
			return 1
		}
		drivers["go"] = program
	}
	return zktest.Run(m)
}
