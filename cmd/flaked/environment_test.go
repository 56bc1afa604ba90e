package main

import (
	"slices"
	"strings"
	"testing"
)

// A variable that sets nothing is worth a warning, unless Kubernetes or the tests have set it.
func TestIgnoredVariables(t *testing.T) {
	commands := newApp(nil, nil, nil).Commands
	for _, name := range strings.Fields("LISTN COLOUR_OF_SKY ZK_AUTH_FIEL LOWER_BOUND") {
		want := "environment variable FLAKED_" + name + " is ignored, because no flag has this name"
		if got := ignoredVariables(commands, []string{"FLAKED_" + name + "=1"}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := ignoredVariables(commands, strings.Fields("HOME=/root FLAKED_LISTEN=1 FLAKED_ZK=h FLAKED_ADDR=h "+
		"FLAKED_CONFIG=f FLAKED_TOKEN=t FLAKED_ZK_AUTH=u:p FLAKED_LISTN= FLAKED_PORT=tcp://1 FLAKED_SERVICE_HOST=1 "+
		"FLAKED_SERVICE_PORT_RESP=7609 FLAKED_PORT_7609_TCP_ADDR=1 FLAKED_ADMIN_SERVICE_PORT=1 "+
		"FLAKED_ZK_PORT_2181_TCP=1 FLAKED_TEST_ZK=require FLAKED_ZK_CLASSPATH=x")); got != nil {
		t.Errorf("%q", got)
	}
}
