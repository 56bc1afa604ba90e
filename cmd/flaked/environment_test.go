package main

import (
	"slices"
	"testing"
)

// A variable that sets nothing is worth a warning, unless Kubernetes or the tests have set it.
func TestIgnoredVariables(t *testing.T) {
	app := newApp(nil, nil, nil)
	for variable, want := range map[string]string{
		"FLAKED_LISTN=1": "environment variable FLAKED_LISTN is ignored, because no flag has this name",
		"FLAKED_COLOUR_OF_SKY=1": "environment variable FLAKED_COLOUR_OF_SKY is ignored, because no flag has " +
			"this name",
		"FLAKED_ZK_AUTH_FIEL=x": "environment variable FLAKED_ZK_AUTH_FIEL is ignored, because no flag has " +
			"this name",
		"FLAKED_LOWER_BOUND=1": "environment variable FLAKED_LOWER_BOUND is ignored, because no flag has " +
			"this name",
		"FLAKED_LISTEN=1":               "",
		"FLAKED_ZK=h":                   "",
		"FLAKED_ADDR=h":                 "",
		"FLAKED_CONFIG=f":               "",
		"FLAKED_TOKEN=t":                "",
		"FLAKED_ZK_AUTH=u:p":            "",
		"FLAKED_LISTN=":                 "",
		"HOME=/root":                    "",
		"FLAKED_PORT=tcp://1":           "",
		"FLAKED_SERVICE_HOST=1":         "",
		"FLAKED_SERVICE_PORT_RESP=7609": "", "FLAKED_PORT_7609_TCP_ADDR=1": "", "FLAKED_ADMIN_SERVICE_PORT=1": "",
		"FLAKED_ZK_PORT_2181_TCP=1": "", "FLAKED_TEST_ZK=require": "", "FLAKED_ZK_CLASSPATH=x": "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		if got := ignoredVariables(app.Commands, []string{variable}); !slices.Equal(got, wanted) {
			t.Errorf("%s: %q, want %q", variable, got, wanted)
		}
	}
}
