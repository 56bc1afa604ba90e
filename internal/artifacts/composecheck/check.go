package composecheck

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
)

// serveFlags are the flags of `flaked serve` that the file may use.
var serveFlags = []string{
	"--zk", "--cluster", "--bootstrap", "--listen", "--allow-open", "--state-dir",
	"--name", "--admin", "--heartbeat", "--lease", "--confirm-time",
}

// Check returns all mistakes in a compose file, joined, or nil.
func Check(data []byte) error {
	f, err := parse(data)
	if err != nil {
		return err
	}
	c := checker{file: f, hostPorts: map[string]string{}, used: map[string]bool{}, ids: map[string]string{}}
	if m := loneDollar.Find(data); m != nil {
		c.fail("file", "%q: Compose would substitute a variable; a plain dollar is written $$", m)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Services)) {
		c.service(name, f.Services[name])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Volumes)) {
		if !c.used[name] {
			c.fail("volume "+name, "nobody mounts it")
		}
	}
	return errors.Join(c.errs...)
}

var loneDollar = regexp.MustCompile(`(?:^|[^$])(?:\$\$)*\$(?:[^$]|$)`)

type checker struct {
	file      *file
	hostPorts map[string]string // published port: service
	used      map[string]bool   // named volumes that are mounted
	ids       map[string]string // ZOO_MY_ID: service
	errs      []error
}

func (c *checker) fail(where, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

func (c *checker) service(name string, s service) {
	if s.Image == "" && s.Build == nil {
		c.fail(name, "neither image nor build")
	}
	if s.Restart != "" && !slices.Contains([]string{"no", "always", "on-failure", "unless-stopped"}, s.Restart) {
		c.fail(name, "restart: %q", s.Restart)
	}
	c.duration(name, "stop_grace_period", s.StopGracePeriod)
	c.dependencies(name, s.DependsOn)
	c.health(name, s.Healthcheck)
	c.mounts(name, s.Volumes)
	c.ports(name, s.Ports)
	if strings.HasPrefix(s.Image, "zookeeper:") {
		c.zookeeper(name, s.Environment)
	}
	if len(s.Command) > 0 {
		c.flaked(name, s)
	}
}

func (c *checker) duration(where, key, value string) {
	if value == "" {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		c.fail(where, "%s: %q is no duration", key, value)
	}
}

func (c *checker) dependencies(name string, on map[string]dependency) {
	for _, dep := range slices.Sorted(maps.Keys(on)) {
		target, ok := c.file.Services[dep]
		if !ok {
			c.fail(name, "depends_on %s, which is no service", dep)
			continue
		}
		switch cond := on[dep].Condition; cond {
		case "service_started", "service_completed_successfully":
		case "service_healthy":
			if target.Healthcheck == nil {
				c.fail(name, "waits for %s to be healthy, which has no healthcheck", dep)
			}
		default:
			c.fail(name, "depends_on %s: condition %q", dep, cond)
		}
	}
}

func (c *checker) health(name string, h *healthcheck) {
	if h == nil {
		return
	}
	if len(h.Test) < 2 || (h.Test[0] != "CMD" && h.Test[0] != "CMD-SHELL") {
		c.fail(name, "healthcheck: %q is not CMD or CMD-SHELL and a command", h.Test)
	}
	c.duration(name, "healthcheck: interval", h.Interval)
	c.duration(name, "healthcheck: timeout", h.Timeout)
	c.duration(name, "healthcheck: start_period", h.StartPeriod)
}

// mounts checks volumes in the short syntax, source:target[:mode]. It takes only named
// volumes.
func (c *checker) mounts(name string, volumes []string) {
	for _, v := range volumes {
		source, target, ok := strings.Cut(v, ":")
		if !ok || !strings.HasPrefix(target, "/") {
			c.fail(name, "volume %q is not name:/path", v)
			continue
		}
		if _, ok := c.file.Volumes[source]; !ok {
			c.fail(name, "volume %s is not declared", source)
		}
		// Two nodes must not share a state directory, nor two servers a data directory.
		if c.used[source] {
			c.fail(name, "volume %s is mounted elsewhere too", source)
		}
		c.used[source] = true
	}
}

// ports checks published ports. It takes only address:host:container, because Compose
// publishes a port without an address on all interfaces.
func (c *checker) ports(name string, ports []string) {
	for _, p := range ports {
		parts := strings.Split(p, ":")
		if len(parts) != 3 {
			c.fail(name, "port %q is not address:host:container", p)
			continue
		}
		if ip := net.ParseIP(parts[0]); ip == nil || !ip.IsLoopback() {
			c.fail(name, "port %q is not published on loopback", p)
		}
		for _, number := range parts[1:] {
			if _, err := net.LookupPort("tcp", number); err != nil {
				c.fail(name, "port %q: %v", p, err)
			}
		}
		if other, taken := c.hostPorts[parts[1]]; taken {
			c.fail(name, "port %s is published by %s too", parts[1], other)
		}
		c.hostPorts[parts[1]] = name
	}
}

// zookeeper checks that the server's ZOO_MY_ID is unique, that its ZOO_SERVERS includes
// the server itself, and that every member of ZOO_SERVERS is a service.
func (c *checker) zookeeper(name string, env map[string]string) {
	id := env["ZOO_MY_ID"]
	if other, taken := c.ids[id]; taken {
		c.fail(name, "ZOO_MY_ID %q is that of %s too", id, other)
	}
	c.ids[id] = name
	if want := "server." + id + "=" + name + ":"; !strings.Contains(" "+env["ZOO_SERVERS"], " "+want) {
		c.fail(name, "ZOO_SERVERS has no %s...", want)
	}
	for server := range strings.FieldsSeq(env["ZOO_SERVERS"]) {
		_, addr, _ := strings.Cut(server, "=")
		host, _, _ := strings.Cut(addr, ":")
		if _, ok := c.file.Services[host]; !ok {
			c.fail(name, "ZOO_SERVERS: %s is no service", server)
		}
	}
}

// flaked checks the command line, the environment and the host name of a node. Of the
// flags it checks the names and the value of --zk, because only cmd/flaked can parse the
// other values.
func (c *checker) flaked(name string, s service) {
	if s.Command[0] != "serve" {
		c.fail(name, "command: %q is not serve", s.Command[0])
	}
	for i, arg := range s.Command[1:] {
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		if !slices.Contains(serveFlags, arg) {
			c.fail(name, "command: no flag %s", arg)
		}
		if arg != "--zk" {
			continue
		}
		for member := range strings.SplitSeq(s.Command[min(i+2, len(s.Command)-1)], ",") {
			host, _, err := net.SplitHostPort(member)
			if _, ok := c.file.Services[host]; err != nil || !ok {
				c.fail(name, "command: --zk %s is no service", member)
			}
		}
	}
	if want := s.Environment["FLAKED_ZK"]; !slices.Contains(s.Command, want) {
		c.fail(name, "FLAKED_ZK %q is not what the command says", want)
	}
	if s.Hostname != name {
		c.fail(name, "hostname %q: nodes would be hard to tell apart", s.Hostname)
	}
}
