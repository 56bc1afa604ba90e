package docker

import (
	"strings"
	"testing"
)

func TestShippedComposeFilePasses(t *testing.T) {
	if err := checkCompose(t.Context(), []byte(shipped(t, "docker-compose.yml"))); err != nil {
		t.Error(err)
	}
}

// Each row makes one mistake in the real file. So the test also proves that the checks
// reach the parts of the file that they are for.
func TestMistakesInComposeFileAreFound(t *testing.T) {
	data := shipped(t, "docker-compose.yml")
	for name, row := range map[string]struct{ old, new, want string }{
		"a key misspelt":             {"    hostname: zk1\n", "    hostnme: zk1\n", "hostnme"},
		"a merged key misspelt":      {"  stop_grace_period:", "  stop_grace:", "stop_grace"},
		"a top-level key misspelt":   {"\nvolumes:", "\nvolume:", "volume"},
		"a nested key misspelt":      {"    start_period: 60s", "    startperiod: 60s", "startperiod"},
		"a build key misspelt":       {"    context:", "    contxt:", "contxt"},
		"a key twice":                {"    hostname: zk1\n", "    hostname: zk1\n    hostname: zk1\n", "already defined"},
		"no such dependency":         {"    zk3:\n      condition:", "    zk4:\n      condition:", `undefined service "zk4"`},
		"no such condition":          {"condition: service_healthy", "condition: healthy", "condition value must be one of"},
		"no healthcheck to wait for": {"    <<: *zookeeper\n", "    image: zookeeper:3.9\n", "zk1 to be healthy, which has no healthcheck"},
		"a volume not declared":      {"\n  zk1-data:\n", "\n", "undefined volume zk1-data"},
		"a volume nobody mounts":     {"\n  zk1-data:\n", "\n  zk1-data:\n  more:\n", "nobody mounts"},
		"a volume of two":            {"- flaked2-state:", "- flaked1-state:", "volume flaked1-state is that of flaked1 too"},
		"a port of two":              {"127.0.0.1:7610:", "127.0.0.1:7609:", "port 7609 is that of flaked1 too"},
		"a port for the world":       {"127.0.0.1:7610:7609", "7610:7609", "not published on loopback"},
		"another address":            {"127.0.0.1:7610:7609", "0.0.0.0:7610:7609", "not published on loopback"},
		"a flag misspelt":            {"    - --state-dir", "    - --statedir", "no flag --statedir"},
		"another verb":               {"    - serve\n", "    - server\n", "is not serve"},
		"a ZooKeeper misspelt":       {"    - zk1:2181,zk2", "    - zk1:2181,zl2", "zl2:2181 is no service"},
		"env and command differ":     {"    FLAKED_ZK: zk1:2181,", "    FLAKED_ZK: ", "not what the command says"},
		"an id of two":               {`ZOO_MY_ID: "2"`, `ZOO_MY_ID: "1"`, "that of zk1 too"},
		"a server not told of":       {"server.3=zk3:2888:3888;2181", "", "has no server.3=zk3"},
		"no duration":                {"    interval: 2s", "    interval: 2", "must be a string"},
		"a variable":                 {"    FLAKED_CLUSTER: demo", "    FLAKED_CLUSTER: $HOME", "substitute a variable"},
		"an interval misspelt":       {"    interval: 2s", "    interval: 2 s", "interval"},
		"a restart misspelt":         {"restart: unless-stopped", "restart: unless_stopped", "restart:"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(data, row.old, row.new, 1)
			if broken == data {
				t.Fatalf("the file holds no %q", row.old)
			}
			err := checkCompose(t.Context(), []byte(broken))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("found %v, want %q", err, row.want)
			}
		})
	}
}

func TestLoneDollarIsFound(t *testing.T) {
	for text, lone := range map[string]bool{
		"$": true, "a$b": true, "${X}": true, "$$$": true, "$$$X": true,
		"": false, "$$": false, "a$$b": false, "$$$$": false,
	} {
		if got := loneDollar.MatchString(text); got != lone {
			t.Errorf("%q: %v, want %v", text, got, lone)
		}
	}
}
