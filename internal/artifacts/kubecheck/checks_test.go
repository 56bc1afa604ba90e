package kubecheck

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	// image is the image of flaked's containers in deploy/kubernetes.
	image = "flaked"
	// tokens is the Secret that users create before they apply the files.
	tokens = "flaked-tokens"
	// endTime is the longest time that a node takes for a clean stop, in seconds.
	endTime = 15
	// podIP is the field path of a pod's address. It also stands for the address itself.
	podIP = "status.podIP"
)

// check returns all mistakes in the kustomization in dir, joined, or nil.
func check(fsys fs.FS, dir string) error {
	objects, err := load(fsys, dir)
	if err != nil {
		return err
	}
	c := checker{objects: objects}
	for _, o := range objects {
		c.where = o.Kind + " " + o.Metadata.Name
		switch o.Kind {
		case "ConfigMap":
		case "Service":
			c.selects(o.Spec.Selector.Labels, o.Spec.Ports, func(p port) string { return p.TargetPort })
		case "PodDisruptionBudget":
			c.selects(o.Spec.Selector.MatchLabels, nil, nil)
		case "NetworkPolicy":
			for _, in := range o.Spec.Ingress {
				c.selects(o.Spec.PodSelector.MatchLabels, in.Ports, func(p port) string { return p.Port })
			}
		case "Deployment", "StatefulSet", "Job":
			c.workload(o)
		default:
			c.fail("a kind that is not looked at here")
		}
	}
	return errors.Join(c.errs...)
}

type checker struct {
	objects []object
	where   string
	errs    []error
}

func (c *checker) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", c.where, fmt.Sprintf(format, args...)))
}

// selects checks that some pods have all labels of want, and that those pods have every
// port. The function name returns the name by which a port refers to the pods' port.
func (c *checker) selects(want map[string]string, ports []port, name func(port) string) {
	found := false
	for _, o := range c.objects {
		if o.Spec.Template == nil || len(want) == 0 || !contains(o.Spec.Template.Metadata.Labels, want) {
			continue
		}
		found = true
		for _, p := range ports {
			if !slices.ContainsFunc(o.Spec.Template.Spec.all(), func(one container) bool { _, ok := one.port(name(p)); return ok }) {
				c.fail("no container of %s %s has a port %q", o.Kind, o.Metadata.Name, name(p))
			}
		}
	}
	if !found {
		c.fail("it selects no pods: %v", want)
	}
}

func contains(have, want map[string]string) bool {
	for name, value := range want {
		if have[name] != value {
			return false
		}
	}
	return true
}

func (p pod) all() []container { return slices.Concat(p.InitContainers, p.Containers) }

// port returns the number of the container's port with that name, and whether there is
// such a port.
func (one container) port(name string) (int, bool) {
	for _, p := range one.Ports {
		if p.Name == name && name != "" {
			return p.ContainerPort, true
		}
	}
	return 0, false
}

func (c *checker) workload(o object) {
	p := o.Spec.Template.Spec
	if p.EnableServiceLinks == nil || *p.EnableServiceLinks {
		c.fail("enableServiceLinks: a service named flaked would put FLAKED_PORT into its environment")
	}
	for _, t := range p.TopologySpreadConstraints {
		if !contains(o.Spec.Template.Metadata.Labels, t.LabelSelector.MatchLabels) || len(t.LabelSelector.MatchLabels) == 0 {
			c.fail("topologySpreadConstraints count other pods than these: %v", t.LabelSelector.MatchLabels)
		}
	}
	if o.Kind == "StatefulSet" && !slices.ContainsFunc(c.objects, func(s object) bool {
		return s.Kind == "Service" && s.Metadata.Name == o.Spec.ServiceName && s.Spec.ClusterIP == "None"
	}) {
		c.fail("serviceName: there is no Service %q without an address of its own", o.Spec.ServiceName)
	}
	mounted := map[string]bool{}
	flaked := 0
	for _, one := range p.all() {
		if !one.SecurityContext.ReadOnlyRootFilesystem {
			c.fail("%s: its root can be written", one.Name)
		}
		for _, m := range one.VolumeMounts {
			mounted[m.Name] = true
		}
		for _, probe := range []*probe{one.StartupProbe, one.ReadinessProbe, one.LivenessProbe} {
			if probe == nil {
				continue
			}
			name := probe.HTTPGet.Port + probe.TCPSocket.Port
			if _, ok := one.port(name); !ok {
				c.fail("%s: a probe asks a port %q that it has not", one.Name, name)
			}
		}
		if one.Image == image {
			flaked++
			c.flaked(o, one)
		}
	}
	if flaked != 1 {
		c.fail("%d containers of %s, want one", flaked, image)
	}
	for _, v := range p.Volumes {
		if !mounted[v.Name] {
			c.fail("nobody mounts the volume %s", v.Name)
		}
		if v.Secret != nil && v.Secret.SecretName != tokens {
			c.fail("a Secret %q that docs/deploy.md does not have made", v.Secret.SecretName)
		}
		// A Secret's file belongs to root. flaked can read it only as a member of fsGroup.
		if v.Secret != nil && (v.Secret.DefaultMode&0o007 != 0 || v.Secret.DefaultMode&0o040 == 0 || p.SecurityContext.FSGroup == nil) {
			c.fail("the tokens of mode %04o cannot be read, or by all", v.Secret.DefaultMode)
		}
	}
}

// environment returns a container's environment, including the data of its ConfigMaps.
func (c *checker) environment(one container) map[string]string {
	env := map[string]string{}
	for _, from := range one.EnvFrom {
		i := slices.IndexFunc(c.objects, func(o object) bool { return o.Kind == "ConfigMap" && o.Metadata.Name == from.ConfigMapRef.Name })
		if i < 0 {
			c.fail("%s: no ConfigMap %q", one.Name, from.ConfigMapRef.Name)
			continue
		}
		maps.Copy(env, c.objects[i].Data)
	}
	for _, e := range one.Env {
		env[e.Name] = e.Value
		if field := e.ValueFrom.FieldRef.FieldPath; field == podIP {
			env[e.Name] = podIP
		} else if field != "" {
			c.fail("%s: %s is of %s, which is not known here", one.Name, e.Name, field)
		}
	}
	return env
}

// flag returns the value of a flag from an argument --name=value, else from the
// container's environment, else "".
func (c *checker) flag(one container, name string) string {
	for _, arg := range one.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return c.environment(one)["FLAKED_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))]
}

// flaked checks a container of flaked against the way flaked behaves: its arguments, its
// environment, its volumes and its probes.
func (c *checker) flaked(o object, one container) {
	p := o.Spec.Template.Spec
	if c.flag(one, "zk") == "" || c.flag(one, "cluster") == "" {
		c.fail("%s: neither ZooKeeper nor a cluster is named", one.Name)
	}
	if len(one.Args) > 0 && one.Args[0] == "cluster" {
		return
	}
	for _, never := range []string{"--bootstrap", "--allow-open", "--dev"} {
		if slices.Contains(one.Args, never) {
			c.fail("%s: %s is not for what is shipped", one.Name, never)
		}
	}
	if need := endTime + one.Lifecycle.PreStop.Sleep.Seconds; p.TerminationGracePeriodSeconds < need {
		c.fail("terminationGracePeriodSeconds: %d, and flaked may take %d to end", p.TerminationGracePeriodSeconds, need)
	}
	c.state(o, one)
	c.probes(one)

	sidecar := slices.ContainsFunc(p.InitContainers, func(i container) bool { return i.Name == one.Name })
	listen := c.flag(one, "listen")
	socket, unix := strings.CutPrefix(listen, "unix:")
	if sidecar != unix {
		c.fail("%s: a sidecar listens on a unix socket, other nodes do not: %q", one.Name, listen)
	}
	if !sidecar {
		if one.ReadinessProbe == nil {
			c.fail("%s: no readinessProbe: clients would be led to nodes that refuse", one.Name)
		}
		if c.flag(one, "advertise") != podIP {
			c.fail("%s: nobody finds it: --advertise is not the pod's address", one.Name)
		}
		if c.flag(one, "token-file") == "" {
			c.fail("%s: anybody is let in", one.Name)
		}
		return
	}
	if one.RestartPolicy != "Always" {
		c.fail("%s: the service would never start", one.Name)
	}
	if one.StartupProbe == nil || one.StartupProbe.HTTPGet.Path != "/readyz" {
		c.fail("%s: without a startupProbe on /readyz the service starts before there are IDs", one.Name)
	}
	shared := one.mountOf(socket)
	for _, app := range p.Containers {
		i := slices.IndexFunc(app.VolumeMounts, func(m mount) bool { return m.Name == shared.Name })
		if shared.Name == "" || i < 0 {
			c.fail("%s does not see the socket %s", app.Name, socket)
		} else if !app.VolumeMounts[i].ReadOnly {
			c.fail("%s could take the socket away", app.Name)
		}
		if one.SecurityContext.RunAsGroup == nil || !slices.Contains(p.SecurityContext.SupplementalGroups, *one.SecurityContext.RunAsGroup) {
			c.fail("%s is not in the socket's group", app.Name)
		}
	}
}

// state checks the state directory. It must be a directory inside a volume, which flaked
// creates itself. flaked refuses the root of a volume, because flaked does not own it.
func (c *checker) state(o object, one container) {
	dir := c.flag(one, "state-dir")
	on := one.mountOf(dir)
	lasting := slices.ContainsFunc(o.Spec.VolumeClaimTemplates, func(t template) bool { return t.Metadata.Name == on.Name })
	switch {
	case on.Name == "":
		c.fail("%s: the state directory %q is on no volume", one.Name, dir)
	case path.Clean(dir) == path.Clean(on.MountPath):
		c.fail("%s: the state directory is the volume itself, which is root's", one.Name)
	case on.ReadOnly:
		c.fail("%s: the state directory cannot be written", one.Name)
	}
	if release := slices.Contains(one.Args, "--release-on-exit"); release == lasting {
		c.fail("%s: --release-on-exit %v, and the state outlives the pod: %v", one.Name, release, lasting)
	}
	security := o.Spec.Template.Spec.SecurityContext
	if lasting && security.FSGroup == nil {
		c.fail("fsGroup: the volume belongs to root, flaked cannot write to it")
	}
	if lasting && security.FSGroupChangePolicy != "OnRootMismatch" {
		c.fail("fsGroupChangePolicy: the second start would find the state directory open to the group, and be refused")
	}
}

// mountOf returns the mount that holds a file, or the zero mount if none does.
func (one container) mountOf(file string) (on mount) {
	for _, m := range one.VolumeMounts {
		if (file == m.MountPath || strings.HasPrefix(file, m.MountPath+"/")) && len(m.MountPath) > len(on.MountPath) {
			on = m
		}
	}
	return on
}

// probes checks that the kubelet can reach the port of each probe, and that only /livez
// restarts a node: a restart does not fix the reasons for which /readyz fails.
func (c *checker) probes(one container) {
	host, number, _ := strings.Cut(c.flag(one, "admin"), ":")
	if host != "0.0.0.0" {
		c.fail("%s: --admin %q is where the kubelet does not reach it", one.Name, c.flag(one, "admin"))
	}
	for name, p := range map[string]*probe{"startupProbe": one.StartupProbe, "readinessProbe": one.ReadinessProbe, "livenessProbe": one.LivenessProbe} {
		if p == nil {
			continue
		}
		if want := map[bool]string{true: "/livez", false: "/readyz"}[name == "livenessProbe"]; p.HTTPGet.Path != want {
			c.fail("%s: %s asks %q, not %s", one.Name, name, p.HTTPGet.Path, want)
		}
		if at, _ := one.port(p.HTTPGet.Port); strconv.Itoa(at) != number {
			c.fail("%s: %s asks port %d, --admin is %s", one.Name, name, at, number)
		}
	}
	if one.LivenessProbe == nil {
		c.fail("%s: no livenessProbe", one.Name)
	}
	// A new node confirms for 12 s, and a node that crashed waits for up to 3 s. 300 s are
	// ample for both.
	if p := one.StartupProbe; p != nil && p.PeriodSeconds*p.FailureThreshold < 300 {
		c.fail("%s: the startupProbe ends it after %d s", one.Name, p.PeriodSeconds*p.FailureThreshold)
	}
}
