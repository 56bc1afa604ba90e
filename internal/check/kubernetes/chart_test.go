package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	strictyaml "sigs.k8s.io/yaml"
)

const chart = "../../../deploy/helm/flaked"

// required are the values that a chart cannot have a default for.
const required = "image.repository=registry.example.com/flaked,zookeeper.servers=zk:2181,"

// helmPath builds helm, of the version in go.mod, and returns its path in Go's cache.
var helmPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(out)), err
})

// helm runs helm, and returns what it prints on its two outputs.
func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	err = cmd.Run()
	return out.String(), messages.String(), err
}

func render(t *testing.T, dir, values string) (stdout, stderr string, err error) {
	t.Helper()
	return helm(t, "template", "flaked", dir, "--kube-version", "1.36", "--set", values)
}

func TestChart(t *testing.T) {
	tls := "tls.secret=c,tls.clientCertificates=true,zookeeper.authSecret=a,zookeeper.tls.secret=z," +
		"zookeeper.tls.clientCertificate=true,zookeeper.tls.serverName=zk"
	all := tls + ",tokensSecret=t,networkPolicy.enabled=true,monitoring.serviceMonitor=true,monitoring.rules=true," +
		"monitoring.labels.release=p,persistence.size=1Gi,persistence.storageClass=local," +
		"persistence.accessMode=ReadWriteOncePod,cluster.settings.datacenter=3,cluster.settings.layout=twitter," +
		"cluster.settings.lease=1h,cluster.workers=32,flags.log-level=debug,flags.heartbeat=2s,image.tag=v1," +
		"flags.log-format=json,pod.nodeSelector.disk=local,pod.priorityClassName=high,pod.imagePullSecrets[0].name=r," +
		"cluster.settings.confirm-time=20s,cluster.settings.on-rollback=refuse,cluster.settings.borrow=1s," +
		"cluster.settings.sequence-start=zero,cluster.settings.segment-start=zero,flags.drain-time=5s," +
		"pod.serviceAccountName=ids,pod.dnsPolicy=None,pod.dnsConfig.nameservers[0]=10.0.0.10,podLabels.team=x," +
		"podAnnotations.note=y,service.type=LoadBalancer,service.annotations.pool=z,cluster.resources.limits.cpu=1"
	platform := "tokensSecret=t,podSecurityContext=null,securityContext.runAsUser=null,securityContext.runAsGroup=null"
	for _, c := range []struct{ name, values, kinds string }{
		{"token", "tokensSecret=t", "Job PodDisruptionBudget Service Service StatefulSet"},
		{"open", "allowOpen=true,cluster.create=false", "PodDisruptionBudget Service Service StatefulSet"},
		{"Deployment", "tokensSecret=t,kind=Deployment,replicas=682", "Deployment Job PodDisruptionBudget Service Service"},
		{"Deployment with TLS", tls + ",kind=Deployment", "Deployment Job PodDisruptionBudget Service Service"},
		{"all", all, "Job NetworkPolicy PodDisruptionBudget PrometheusRule Service Service ServiceMonitor StatefulSet"},
		{"names and servers that flaked allows", `tokensSecret=t,cluster.name=Orders_1.eu-2,zookeeper.servers=zk1\, [::1]:2181/a/B`,
			"Job PodDisruptionBudget Service Service StatefulSet"},
		{"user and groups of the platform", platform, "Job PodDisruptionBudget Service Service StatefulSet"},
		{"alerts only", "kind=Sidecar,monitoring.rules=true", "Job PrometheusRule"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, chart, required+c.values, c.kinds) })
	}
}

// TestFailuresAreShown checks that Kubernetes says why a container ended or a pod does not start.
func TestFailuresAreShown(t *testing.T) {
	for _, c := range []struct {
		values, line string
		times        int
	}{
		{"allowOpen=true", "terminationMessagePolicy: FallbackToLogsOnError", 2}, // nodes and Job
		{"tokensSecret=t", `secretName: "t", defaultMode: 0440, items: [{key: tokens, path: tokens}]`, 1},
		{"tokensSecret=t", "activeDeadlineSeconds: 3600", 1}, // Helm waits 300 s, and the deadline deletes the pod
	} {
		out, messages, err := render(t, chart, required+c.values)
		if n := strings.Count(out, c.line); err != nil || n != c.times {
			t.Errorf("%s: %q is there %d times: %v\n%s%s", c.values, c.line, n, err, messages, out)
		}
	}
}

// TestPlatformSetsTheSecurity checks that null removes what a platform sets by itself.
func TestPlatformSetsTheSecurity(t *testing.T) {
	out, messages, err := render(t, chart, required+"allowOpen=true,securityContext=null,podSecurityContext=null")
	if err != nil || strings.Contains(out, "securityContext") {
		t.Errorf("%v\n%s%s", err, messages, out)
	}
}

// TestSidecar checks the chart of examples/webapp, which puts a node into its pods.
func TestSidecar(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../examples/webapp/chart")); err != nil {
		t.Fatal(err)
	}
	flaked, err := filepath.Abs(chart)
	if err == nil {
		charts := filepath.Join(dir, "charts")
		err = errors.Join(os.Mkdir(charts, 0o700), os.Symlink(flaked, filepath.Join(charts, "flaked")))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{"", "flaked.zookeeper.tls.secret=z,flaked.zookeeper.authSecret=a"} {
		check(t, dir, "flaked."+strings.Replace(required, "zoo", "flaked.zoo", 1)+values, "Deployment Job")
	}
}

// check renders a chart and validates all objects. kinds are those that it must have, sorted.
func check(t *testing.T, dir, values, kinds string) {
	t.Helper()
	if out, messages, err := helm(t, "lint", "--strict", dir, "--set", values); err != nil {
		t.Errorf("helm lint: %v\n%s%s", err, out, messages)
	}
	out, messages, err := render(t, dir, values)
	if err != nil {
		t.Fatalf("%v\n%s", err, messages)
	}
	var got []string
	for documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(out))); ; {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var object struct{ Kind string }
		if err := strictyaml.Unmarshal(text, &object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if object.Kind == "" {
			continue // only comments
		}
		got = append(got, object.Kind)
		if object.Kind != "PrometheusRule" {
			known(t, string(text))
		}
		if err := checkObject(object.Kind, text); err != nil {
			t.Errorf("%s: %v", object.Kind, err)
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != kinds {
		t.Errorf("the chart has %s. It must have %s", got, kinds)
	}
}

func checkObject(kind string, text []byte) error {
	switch kind {
	case "ServiceMonitor":
		return strictyaml.UnmarshalStrict(text, &monitoring.ServiceMonitor{})
	case "PrometheusRule":
		return strictyaml.UnmarshalStrict(text, &monitoring.PrometheusRule{})
	}
	// Decode returns the form that the API server validates, with defaults filled in.
	obj, err := runtime.Decode(strict, text)
	if err != nil {
		return err
	}
	return validate(obj)
}

var strict = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder()

// setting matches the flags and the variables of flaked in a manifest.
var setting = regexp.MustCompile(`--[a-z]+[a-z-]*|\bFLAKED_[A-Z_]+`)

// help returns the help of the commands of flaked that a manifest has settings for.
var help = sync.OnceValues(func() (string, error) {
	var all strings.Builder
	for _, command := range []string{"serve", "get", "cluster init"} {
		args := append([]string{"run", "./cmd/flaked"}, strings.Fields(command)...)
		cmd := exec.Command("go", append(args, "--help")...)
		cmd.Dir, cmd.Stdout = "../../..", &all
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("flaked %s --help: %w", command, err)
		}
	}
	return all.String(), nil
})

// known fails the test if flaked has no flag for a setting. flaked only warns of an unknown variable.
func known(t *testing.T, manifest string) {
	t.Helper()
	text, err := help()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range setting.FindAllString(manifest, -1) {
		flag := s
		if name, ok := strings.CutPrefix(s, "FLAKED_"); ok {
			flag = "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		}
		if s != "FLAKED_ZK_AUTH" && s != "FLAKED_PORT" && s != "--flaked" && !strings.Contains(text, flag+" ") {
			t.Errorf("flaked has no flag for %s", s)
		}
	}
}

// TestRules checks that the rules of the chart are those of deploy/prometheus.
func TestRules(t *testing.T) {
	source, err := os.ReadFile("../../../deploy/prometheus/flaked.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	out, messages, err := helm(t, "template", "flaked", chart, "--kube-version", "1.36", "--set",
		required+"kind=Sidecar,monitoring.rules=true,cluster.create=false")
	if err != nil {
		t.Fatal(err, messages)
	}
	if err := errors.Join(strictyaml.Unmarshal(source, &want), strictyaml.Unmarshal([]byte(out), &got)); err != nil {
		t.Fatal(err)
	}
	if spec := got.(map[string]any)["spec"]; !reflect.DeepEqual(spec, want) {
		t.Errorf("the PrometheusRule differs from deploy/prometheus: %v", spec)
	}
}

// TestRefusedValues checks that unsafe values are refused, and that the message says what to do.
func TestRefusedValues(t *testing.T) {
	token := required + "tokensSecret=t,"
	for _, c := range []struct{ values, sentence string }{
		{"tokensSecret=t,zookeeper.servers=zk", "image.repository is missing. Build flaked's image"},
		{"tokensSecret=t,image.repository=r", `--set 'zookeeper.servers=zk1:2181\,zk2:2181\,zk3:2181'`},
		{required, "the port for clients would be open, without a token and without TLS. Set tokensSecret to"},
		{token + "tls.clientCertificates=true", "Set tls.secret to a Secret with tls.crt, tls.key and ca.crt"},
		{token + "zookeeper.tls.serverName=zk", "Set zookeeper.tls.secret to a Secret with ca.crt"},
		{token + "kind=Sidecar", "tokensSecret has no effect with kind Sidecar"},
		{required + "kind=Sidecar", "List flaked under dependencies of your own chart, and include its sidecar there, as docs/deploy.md"},
		{required + "kind=Sidecar,networkPolicy.enabled=true", "networkPolicy.enabled has no effect with kind Sidecar"},
		{token + "kind=Deployment,persistence.size=1Gi", "they would share one. Remove it, or set kind=StatefulSet"},
		{token + "kind=Deployment,persistence.existingClaim=c", "they would share one. Remove it"},
		{token + "persistence.enabled=false", "persistence.enabled is not a setting, because each node of a StatefulSet"},
		{token + "persistence.existingClaim=c", "persistence.existingClaim is not a setting, because each node"},
		{token + "persistence.accessMode=ReadWriteMany", "Set ReadWriteOnce or ReadWriteOncePod"},
		{token + "cluster.settings.layout=twitter", "Give the number of workers that `flaked layout 'twitter'` prints"},
		{token + "replicas=1025", "1025 replicas need 1025 workers"},
		{token + "kind=Deployment,replicas=683", "683 replicas need 1025 workers"},
		{token + "cluster.settings.layout=twitter,cluster.workers=32,replicas=33", "the layout has 32. Set fewer"},
		{token + "terminationGracePeriodSeconds=19", "terminationGracePeriodSeconds is 19, but a node needs 20"},
		{token + "resources.limits.memory=7Mi", "resources.limits.memory is 7Mi. A node needs 64Mi or more"},
		{token + "resources.limits.memory=60M", "resources.limits.memory is 60M. A node needs 64Mi or more"},
		{required + "kind=Sidecar,sidecar.resources.limits.memory=33554432", "sidecar.resources.limits.memory is 33554432"},
		// Of these, the schema says enough.
		{token + "service.type=ExternalName", "at '/service/type': value must be one of"},
		{token + "replicas=0", "at '/replicas': minimum: got 0, want 1"},
		{token + "kind=DaemonSet", "at '/kind': value must be one of 'StatefulSet', 'Deployment', 'Sidecar'"},
		{token + "cluster.name=my orders", "at '/cluster/name': 'my orders' does not match pattern"},
		{token + "cluster.name=.orders", "at '/cluster/name': '.orders' does not match pattern"},
		{token + "cluster.name=" + strings.Repeat("x", 65), "does not match pattern"},
		{token + "cluster.name=", "at '/cluster/name': '' does not match pattern"},
		{token + "zookeeper.servers=http://zk:2181", "at '/zookeeper/servers': 'http://zk:2181' does not match pattern"},
		{token + `zookeeper.servers=zk1:2181\,tcp://zk2:2181/a`, "at '/zookeeper/servers': 'zk1:2181,tcp://zk2:2181/a' does not"},
		{token + `zookeeper.servers=zk1:2181/a\,zk2:2181/a`, "at '/zookeeper/servers': 'zk1:2181/a,zk2:2181/a' does not match"},
		{token + "replica=3", "additional properties 'replica' not allowed"},
		{token + "tls.cert=c", "at '/tls': additional properties 'cert' not allowed"},
		{token + "flags.bootstrap=true", "at '/flags': additional properties 'bootstrap' not allowed"},
		{token + "pod.hostNetwork=true", "at '/pod': additional properties 'hostNetwork' not allowed"},
		{token + "tls=null", "missing property 'tls'"},
	} {
		switch out, messages, err := render(t, chart, c.values); {
		case err == nil:
			t.Errorf("%s: rendered\n%s", c.values, out)
		case !strings.Contains(messages, c.sentence):
			t.Errorf("%s: the message has no %q:\n%s", c.values, c.sentence, messages)
		}
	}
}
