package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// apiServer answers what Helm asks while it renders a chart for an upgrade: which APIs there are, and one object of
// the release, of this kind, whose cluster is default. The object's claims have the class local and 64Mi.
func apiServer(t *testing.T, kind string) *httptest.Server {
	plural := strings.ToLower(kind) + "s"
	answers := map[string]string{
		"/version": `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1":  `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "apps",
			"versions": [{"groupVersion": "apps/v1", "version": "v1"}]}]}`,
		"/apis/apps/v1": `{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
			{"name": "statefulsets", "kind": "StatefulSet", "namespaced": true},
			{"name": "deployments", "kind": "Deployment", "namespaced": true}]}`,
		"/apis/apps/v1/namespaces/default/" + plural + "/flaked": fmt.Sprintf(`{"kind": %q, "apiVersion": "apps/v1",
			"metadata": {"name": "flaked"}, "spec": {"template": {"spec": {"containers": [{"name": "flaked", "env": [
			{"name": "FLAKED_ZK", "value": "zk:2181"}, {"name": "FLAKED_CLUSTER", "value": "default"},
			{"name": "FLAKED_ADVERTISE", "valueFrom": {}}]}]}}, "volumeClaimTemplates": [{"spec": {"storageClassName": "local",
			"resources": {"requests": {"storage": "64Mi"}}}}]}}`, kind),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if text, ok := answers[r.URL.Path]; ok {
			fmt.Fprint(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestUpgradeRefusesWhatCannotChange checks that a sentence comes in place of the API server's refusal.
func TestUpgradeRefusesWhatCannotChange(t *testing.T) {
	for _, c := range []struct{ has, values, sentence string }{
		{"StatefulSet", "replicas=5", ""},
		{"StatefulSet", "persistence.size=64Mi,persistence.storageClass=local", ""},
		{"Deployment", "kind=Deployment,replicas=5", ""},
		{"StatefulSet", "kind=Deployment", "kind is Deployment, but this release has a StatefulSet. The kind of a release"},
		{"StatefulSet", "kind=Sidecar,tokensSecret=", "kind is Sidecar, but this release has a StatefulSet"},
		{"Deployment", "kind=StatefulSet", "kind is StatefulSet, but this release has a Deployment"},
		{"Deployment", "kind=Deployment,cluster.name=other", "cluster.name is other, but the nodes of this release are in the cluster default"},
		{"StatefulSet", "cluster.name=other", "Set cluster.name=default. For another cluster, install a second release"},
		{"StatefulSet", "persistence.size=1Gi", "persistence.size is 1Gi, but the claims of this release have 64Mi"},
		{"StatefulSet", "persistence.storageClass=fast", `persistence.storageClass is fast, but the claims of this release have "local"`},
	} {
		_, messages, err := helm(t, "template", "flaked", chart, "--kube-version", "1.36", "--is-upgrade", "--dry-run=server",
			"--kube-apiserver", apiServer(t, c.has).URL, "--set", required+"tokensSecret=t,"+c.values)
		switch {
		case c.sentence == "" && err != nil:
			t.Errorf("%s, %s: %v\n%s", c.has, c.values, err, messages)
		case c.sentence != "" && (err == nil || !strings.Contains(messages, c.sentence)):
			t.Errorf("%s, %s: %v: the message has no %q:\n%s", c.has, c.values, err, c.sentence, messages)
		}
	}
}
