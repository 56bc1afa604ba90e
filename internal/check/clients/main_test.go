// Package clients tests the clients of flaked: package client, and those in clients/, which are in other languages. A
// client is called through its driver, a program that clients/README.md describes.
//
// Cases runs clients/cases.jsonl: each case has fake nodes that follow a script, calls, and what they must give. A
// client must do the same in each language, so the cases are the specification of all clients.
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
