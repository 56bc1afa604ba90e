package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// serveFlags are the flags of `flaked serve` that the compose file may use.
var serveFlags = []string{
	"--zk", "--cluster", "--bootstrap", "--listen", "--allow-open", "--state-dir",
	"--name", "--admin", "--heartbeat", "--lease", "--confirm-time",
}

var loneDollar = regexp.MustCompile(`(?:^|[^$])(?:\$\$)*\$(?:[^$]|$)`)

// checkCompose returns all mistakes in a compose file, joined, or nil.
func checkCompose(ctx context.Context, text []byte) error {
	if m := loneDollar.Find(text); m != nil {
		return fmt.Errorf("%q: Compose would substitute a variable; a plain dollar is written $$", m)
	}
	project, err := loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: repository, ConfigFiles: []types.ConfigFile{{Filename: "docker-compose.yml", Content: text}},
	})
	if err != nil {
		return err
	}
	c := checker{services: project.Services, owners: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(c.services)) {
		c.service(name, c.services[name])
	}
	for name := range project.Volumes {
		if c.owners["volume "+name] == "" {
			c.fail("volume "+name, "nobody mounts it")
		}
	}
	return errors.Join(c.errs...)
}

type checker struct {
	services types.Services
	owners   map[string]string // the service that has a volume, a port or an ID
	errs     []error
}

func (c *checker) fail(where, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// own makes a service the owner of something that services must not share.
func (c *checker) own(name, what string) {
	if other, taken := c.owners[what]; taken {
		c.fail(name, "%s is that of %s too", what, other)
	}
	c.owners[what] = name
}

func (c *checker) service(name string, s types.ServiceConfig) {
	if s.Restart != "" && !slices.Contains([]string{"no", "always", "on-failure", "unless-stopped"}, s.Restart) {
		c.fail(name, "restart: %q", s.Restart)
	}
	for dep, on := range s.DependsOn {
		if on.Condition == types.ServiceConditionHealthy && c.services[dep].HealthCheck == nil {
			c.fail(name, "waits for %s to be healthy, which has no healthcheck", dep)
		}
	}
	// Two nodes must not share a state directory, nor two servers a data directory.
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeVolume {
			c.fail(name, "%s on %s is not a named volume", v.Source, v.Target)
		}
		c.own(name, "volume "+v.Source)
	}
	for _, p := range s.Ports {
		// Compose publishes a port without an address on all interfaces.
		if !net.ParseIP(p.HostIP).IsLoopback() {
			c.fail(name, "port %s is not published on loopback", p.Published)
		}
		c.own(name, "port "+p.Published)
	}
	env := s.Environment.ToMapping()
	if strings.HasPrefix(s.Image, "zookeeper:") {
		c.zookeeper(name, env)
	}
	if len(s.Command) > 0 {
		c.flaked(name, s, env)
	}
}

// zookeeper checks that the server's ZOO_MY_ID is unique, that its ZOO_SERVERS includes
// the server itself, and that every member of ZOO_SERVERS is a service.
func (c *checker) zookeeper(name string, env types.Mapping) {
	id := env["ZOO_MY_ID"]
	c.own(name, "ZOO_MY_ID "+id)
	if want := "server." + id + "=" + name + ":"; !strings.Contains(" "+env["ZOO_SERVERS"], " "+want) {
		c.fail(name, "ZOO_SERVERS has no %s...", want)
	}
	for server := range strings.FieldsSeq(env["ZOO_SERVERS"]) {
		_, addr, _ := strings.Cut(server, "=")
		host, _, _ := strings.Cut(addr, ":")
		if _, ok := c.services[host]; !ok {
			c.fail(name, "ZOO_SERVERS: %s is no service", server)
		}
	}
}

// flaked checks the command line, the environment and the host name of a node. Of the
// flags it checks the names and the value of --zk, because only cmd/flaked can parse the
// other values.
func (c *checker) flaked(name string, s types.ServiceConfig, env types.Mapping) {
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
			if _, ok := c.services[host]; err != nil || !ok {
				c.fail(name, "command: --zk %s is no service", member)
			}
		}
	}
	if want := env["FLAKED_ZK"]; !slices.Contains(s.Command, want) {
		c.fail(name, "FLAKED_ZK %q is not what the command says", want)
	}
	if s.Hostname != name {
		c.fail(name, "hostname %q: nodes would be hard to tell apart", s.Hostname)
	}
}
