package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// othersVariables matches variables named FLAKED_... that no command reads: those that Kubernetes
// sets in every pod for services named flaked or flaked-..., those of the tests and those of
// scripts/zk-dev.sh.
var othersVariables = regexp.MustCompile(
	`^FLAKED_(([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
		`PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)|TEST_.*|MUTANTS|ZKTEST_.*|ZK_(CLASSPATH|JAVA|FROM))$`)

// ignoredVariables returns a warning for each variable FLAKED_... in environ that sets nothing.
func ignoredVariables(commands []*cli.Command, environ []string) []string {
	known := map[string]bool{"FLAKED_CONFIG": true, tokenEnv: true, zkAuthEnv: true, traceEnv: true}
	for name := range allFlags(commands) {
		known[variableOf(name)] = true
	}
	var warnings []string
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "FLAKED_") || value == "" || known[name] || othersVariables.MatchString(name) {
			continue
		}
		warnings = append(warnings, "environment variable "+name+" is ignored, because no flag has this name")
	}
	slices.Sort(warnings)
	return warnings
}

// warnOfVariables prints the warnings of ignoredVariables on standard error.
func warnOfVariables(c *cli.Context) {
	for _, warning := range ignoredVariables(c.App.Commands, os.Environ()) {
		fmt.Fprintln(c.App.ErrWriter, "flaked: warning: "+warning)
	}
}
