package kubernetes

import (
	"strings"
	"testing"
)

// TestNotes checks that what Helm prints after an installation leads to the first ID and to the metrics, and that
// flaked has the flags in it.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		values   string
		has, not []string
	}{
		{"allowOpen=true", []string{
			"exec statefulset/orders-flaked --container flaked -- /usr/local/bin/flaked get 3",
			"run first-id --rm --attach --restart=Never --image=registry.example.com/flaked:v1 \\\n    -- get --addr orders-flaked:7609\n",
			"port 7610 of each pod behind the Service orders-flaked-nodes", "set monitoring.serviceMonitor=true",
			"set monitoring.rules=true",
		}, []string{"FLAKED_TOKEN", "--labels", "--overrides"}},
		{"tokensSecret=t,networkPolicy.enabled=true,monitoring.serviceMonitor=true,monitoring.rules=true", []string{
			`    --env=FLAKED_TOKEN="$(kubectl --namespace ids get secret t --output 'jsonpath={.data.tokens}' | base64 -d)" \`,
			"    --labels=flaked-client=true \\\n", "the ServiceMonitor orders-flaked", "The PrometheusRule orders-flaked",
		}, []string{"set monitoring.", "7610", "--overrides"}},
		{"tls.secret=c,tls.clientCertificates=true", []string{
			`"volumeMounts":[{"mountPath":"/tls","name":"tls"}]`, `"volumes":[{"name":"tls","secret":{"secretName":"c"}}]`,
			"scrape /metrics over HTTPS at port 7610", " --tls-ca /tls/ca.crt --tls-cert /tls/tls.crt --tls-key /tls/tls.key\n",
		}, []string{"FLAKED_TOKEN"}},
		{"kind=Sidecar,monitoring.rules=true", []string{"Each pod that includes flaked.sidecar has a node"}, []string{"kubectl"}},
	} {
		// The API server of the test does not know the objects, so echo takes their place.
		out, messages, err := helm(t, "install", "orders", chart, "--namespace", "ids", "--dry-run=client",
			"--kube-apiserver", apiServer(t, "StatefulSet").URL, "--post-renderer", "echo", "--post-renderer-args", "#",
			"--set", required+"image.tag=v1,"+c.values)
		_, notes, _ := strings.Cut(out, "\nNOTES:\n")
		if err != nil || notes == "" {
			t.Fatalf("%s: %v\n%s", c.values, err, messages)
		}
		for _, want := range c.has {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: there is no %q in\n%s", c.values, want, notes)
			}
		}
		for _, unwanted := range c.not {
			if strings.Contains(notes, unwanted) {
				t.Errorf("%s: there is %q in\n%s", c.values, unwanted, notes)
			}
		}
		_, command, _ := strings.Cut(notes, "    -- get ")
		command, _, _ = strings.Cut(command, "\n")
		known(t, command)
	}
}
