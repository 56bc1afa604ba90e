package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"regexp"
	"strings"
)

// notRun lists the commands that TestDocuments does not run, with the reason. A key is a whole
// command, or a program followed by " *". The tests of cmd/flaked parse commands of flaked all
// the same.
var notRun = map[string]string{
	"docker *":    "there is no Docker engine; internal/check/deploy runs image and Compose file by podman",
	"kubectl *":   "there is no cluster",
	"helm *":      "there is no cluster",
	"dpkg *":      "internal/check/deploy installs the package",
	"editor *":    "is for a person",
	"systemctl *": "there is no systemd to ask; internal/ops/host/systemd checks the unit",
	"go *":        "a test, or the Go command's own",
	"taskset *":   "a measurement, of minutes and in turns",
	"git *":       "needs a commit of a release",
	"cd ~/download && sha256sum --check --ignore-missing SHA256SUMS": "" +
		"needs the files of a release; make nightly compares two builds",

	"diff ~/download/SHA256SUMS dist/SHA256SUMS": "needs the files of a release; make nightly compares two builds",
	`for host in ids-1 ids-2 ids-3; do
  ssh $host 'sudo flaked drain; sudo systemctl restart flaked' || break
  timeout 120 sh -c "until flaked healthcheck --addr $host:7609; do sleep 1; done" || break
done`: "needs machines and ssh",
	"flaked serve --bootstrap":        "is advice, and creates the cluster of the node that each document has",
	"rm /var/lib/flaked/flaked.state": "is for a node that systemd has stopped",
	"zkCli.sh *":                      "is ZooKeeper's own, and looks at what Leaf has there",
	"eval *":                          "internal/testkit/zktest tests scripts/zk-dev.sh, on ports of its own",
	".ci/run":                         "is what runs this",
	"install flaked /usr/local/bin/":  "is for an unpacked archive",
	"install -d -m 700 -o flaked -g flaked /var/lib/flaked": "" +
		"needs the user flaked; the Debian package does the same, and internal/check/deploy checks that",

	"install -m 644 deploy/systemd/flaked.service /etc/systemd/system/": "" +
		"writes where the machine's own units are; internal/ops/host/systemd checks them",

	"install -m 644 deploy/systemd/flaked.sysusers /etc/sysusers.d/flaked.conf && systemd-sysusers": "" +
		"makes a user; internal/check/deploy does in a container",

	`flaked cluster init --zk zk1:2281,zk2:2281,zk3:2281 --cluster orders --zk-auth-file /etc/flaked/zk.auth \
  --zk-tls-ca /etc/flaked/ca.pem --zk-tls-cert /etc/flaked/flaked.pem --zk-tls-key /etc/flaked/flaked.key`: "" +
		"takes a ZooKeeper with TLS",
	"flaked COMMAND --help": "no command's name",
	`mkdir /backup/zk-today && cd /var/lib/zookeeper/version-2 && \
  cp -p snapshot.* /backup/zk-today/ && cp -p log.* *Epoch /backup/zk-today/`: "" +
		"is for ZooKeeper's machine; TestRestoredBackupRepeatsNothing copies the same files",
}

// how says how a command is run and which result is expected. The zero value runs it beside a
// node and expects exit code 0.
type how struct {
	alone   bool                // needs no node
	stays   bool                // is the node for the commands that follow
	codes   []int               // allowed exit codes; nil for 0
	prints  string              // pattern that the output matches
	shown   func(string) string // the part of the output that equals the document's
	answers func(string) string // the part of a transcript that is output
	stdin   func(string) string // the part of a transcript that is input
	first   func(w *docWorld)   // is called before the command
	env     []string            // environment of the command
}

func (h how) input(transcript string) string {
	if h.stdin == nil {
		return ""
	}
	return h.stdin(transcript)
}

// alone lists the commands of flaked that need no node.
var alone = []string{"flaked layout", "flaked --version", "flaked completion"}

const oneID = `(?m)^\d{19}$`

var howRun = map[string]how{
	// These are in sentences of several documents.
	`flaked doctor`:          {codes: []int{0, 1, 4}},
	`flaked drain`:           {codes: []int{1, 3}, prints: "no state found|no running node uses"},
	`flaked workers release`: {codes: []int{2}, prints: "expected one worker"},
	`flaked status -o json`:  {codes: []int{0, 4}},
	`flaked bench --rate 20000 --duration 60s --conns 50`: {codes: []int{0, 4}},

	// troubleshooting.md
	`flaked cluster thaw --cluster orders`: {codes: []int{2}, prints: "To go on, add --confirm"},

	// README.md
	`printf 'GET\n' | nc -N 127.0.0.1 7609`:                                {prints: oneID},
	`printf 'GET 3\n' | nc -N 127.0.0.1 7609`:                              {shown: shape},
	`redis-cli -p 7609 GET id`:                                             {shown: shape},
	`bin/flaked decode 2125378343393034314`:                                {shown: shape},
	`flaked serve --config /etc/flaked.yaml`:                               {alone: true},
	`flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181`:                  {alone: true},
	`flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181 --cluster orders`: {alone: true},

	// docs/testing.md, three nodes
	`export FLAKED_CLUSTER=walk`: {},
	`for n in 1 2 3; do
  bin/flaked serve --heartbeat 1s --name ids-$n --listen 127.0.0.1:771$n --admin 127.0.0.1:781$n \
    --state-dir /tmp/walk/ids-$n >/tmp/walk/ids-$n.log 2>&1 &
  echo $! >/tmp/walk/ids-$n.pid
done`: {},
	`for n in 1 2 3; do until bin/flaked healthcheck --addr 127.0.0.1:771$n; do sleep 1; done; done`: {},
	`for n in 1 2 3; do bin/flaked get 1000 --addr 127.0.0.1:771$n; done > /tmp/walk/ids.txt`:        {},
	`kill -9 $(cat /tmp/walk/ids-2.pid)`:                                           {},
	`bin/flaked get --addr 127.0.0.1:7712 || bin/flaked get --addr 127.0.0.1:7713`: {prints: oneID},
	`bin/flaked status`: {codes: []int{0, 4}, shown: titles},
	`until bin/flaked healthcheck --addr 127.0.0.1:7712; do sleep 1; done`:                     {},
	`for n in 1 2 3; do bin/flaked get 1000 --addr 127.0.0.1:771$n; done >> /tmp/walk/ids.txt`: {},
	`sort /tmp/walk/ids.txt | uniq -d`:                                                         {prints: `^$`},
	`bin/flaked get --addr 127.0.0.1:7711`:                                                     {prints: oneID},
	`curl -s 'http://127.0.0.1:7811/readyz?verbose'`:                                           {prints: `\[\+\] worker: \d, serving(.*\n)*\[\+\] lease: .* left`},
	`kill $(cat /tmp/walk/ids-1.pid /tmp/walk/ids-2.pid /tmp/walk/ids-3.pid)`:                  {},
	`rm -r /tmp/walk`: {codes: []int{0, 1}}, // the nodes may still be stopping

	// docs/clients.md
	`flaked serve --dev`: {alone: true},

	// docs/http.md
	`curl 'http://127.0.0.1:7610/v1/ids?n=2'`:                              {shown: shape},
	`curl http://127.0.0.1:7610/v1/decode/2123840322550104099`:             {shown: exact},
	`curl -X POST 'http://127.0.0.1:7610/v1/sequences/ticket/next?n=2'`:    {shown: exact},
	`curl -X POST 'http://127.0.0.1:7610/v1/sequences/ticket/range?n=100'`: {shown: exact},

	// docs/performance.md
	`flaked cluster init --zk zk1:2181 --cluster west --layout twitter --datacenter 3`: {alone: true,
		prints: `workers +32\ndatacenter +3\n`},
	`flaked doctor --config /etc/flaked.yaml`: {codes: []int{0, 1, 4},
		prints: `(ok|warn) +zookeeper +127.0.0.1`},

	// docs/layouts.md
	`flaked cluster init --zk zk1:2181 --layout sonyflake`: {alone: true, env: []string{"FLAKED_CLUSTER=sony"}},
	`flaked decode --layout twitter 563583455628754944`: {alone: true,
		prints: `563583455628754944   2015-02-06T06:22:21.353Z  1423203741353           5       0         0`},

	// docs/migration.md
	`flaked decode --layout leaf 2123840256405929993`: {alone: true, shown: exact},
	`flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181 --cluster rolling ` +
		`--layout datacenter=1,worker=9 --datacenter 1`: {
		alone: true, prints: `workers +512\ndatacenter +1\n`,
	},
	`flaked serve --zk zk1:2181,zk2:2181,zk3:2181 --cluster orders --admin 0.0.0.0:8080 --allow-open`: {stays: true,
		first: (*docWorld).halt},
	`curl http://127.0.0.1:8080/api/snowflake/get/order`: {prints: `(?m)\d{19}$`},
	`flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181 --cluster sony ` +
		`--layout time=39@10ms,sequence=8,datacenter=1,worker=15,epoch=2014-09-01 --datacenter 1`: {
		alone: true, prints: `workers +32768\n`,
	},
	`flaked seq create order --start 5000000`: {codes: []int{0, 1}},
	`flaked seq delete order`:                 {codes: []int{1, 2}},
	`flaked seq set order --next 200000`:      {codes: []int{0, 1}},
	`flaked seq set order --next 5000`:        {codes: []int{0, 1, 2}},
	`flaked seq show NAME -o json`:            {codes: []int{1}},

	// docs/operate.md, docs/security.md and docs/troubleshooting.md
	`flaked status`: {codes: []int{0, 4}, shown: titles},
	`flaked status --addr ids-1:7609 --addr ids-2:7609`: {codes: []int{4},
		prints: `nodes asked: 1 answered, 1 did not answer`},

	`runuser -u flaked -- flaked doctor --config /etc/flaked.yaml`: {codes: []int{0, 1, 4},

		prints: `(ok|warn) +zookeeper +127.0.0.1`},

	`flaked workers release 7 --confirm 'release worker 7 of ids-3'`: {},
	`flaked drain --state-dir /var/lib/flaked --release`: {codes: []int{1, 3},
		prints: "no state found|no running node uses"},
	`flaked drain --state-dir /var/lib/flaked`: {codes: []int{1, 3},
		prints: "no state found|no running node uses"},
	`openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=flaked authority' \
  -keyout ca.key -out ca.pem`: {},
	`openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ids-1 \
  -addext 'subjectAltName=DNS:ids-1,DNS:localhost,IP:127.0.0.1' -keyout node.key -out node.csr`: {},
	`openssl x509 -req -in node.csr -copy_extensions copy -CA ca.pem -CAkey ca.key -days 365 -out node.pem`: {},

	`openssl rand -hex 32 > /etc/flaked/token && chmod 600 /etc/flaked/token`:                 {},
	`flaked get --addr ids-1:7609 --token-file /etc/flaked/token --tls-ca /etc/flaked/ca.pem`: {prints: oneID},
	`flaked serve --config /etc/flaked.yaml --listen 0.0.0.0:7609 --token-file /etc/flaked/token \
  --tls-cert /etc/flaked/node.pem --tls-key /etc/flaked/node.key`: {stays: true, first: func(w *docWorld) {
		w.halt()
		w.shell("mv ca.pem node.key node.pem etc", "")
	}},
	`printf 'flaked:secret\n' > /etc/flaked/zk.auth && chmod 600 /etc/flaked/zk.auth`: {},

	// docs/sequences.md
	`flaked seq create`:                                          {codes: []int{2}},
	`bin/flaked seq create invoice --mode strict`:                {codes: []int{0, 1}},
	`printf 'NEXT invoice order-4711\n' | nc -N 127.0.0.1 7609`:  {prints: `^1\n$`},
	`flaked seq recover invoice`:                                 {codes: []int{1}, prints: "not frozen|not found"},
	`flaked seq show order`:                                      {codes: []int{0, 1}},
	`flaked seq set`:                                             {codes: []int{2}},
	`flaked seq delete`:                                          {codes: []int{2}},
	`flaked seq purge`:                                           {codes: []int{2}},
	`flaked seq set order --next 5000000 --vouch-after-loss`:     {codes: []int{1, 2}},
	`flaked seq set 'order:*' --next 5000000 --vouch-after-loss`: {codes: []int{1, 2}},
	`bin/flaked seq create order`:                                {codes: []int{0, 1}},
	`printf 'NEXT order\n' | nc -N 127.0.0.1 7609`:               {prints: `^\d+\n$`},
	`redis-cli -p 7609 NEXT invoice order-4711`:                  {prints: `^1\n$`},
	`redis-cli -p 7609 INCR order`:                               {prints: `^\d+\n$`},
	`printf 'NEXT order:20261122\n' | nc -N 127.0.0.1 7609`:      {prints: `^1\n$`},
	`printf 'NEXT order:20261123\n' | nc -N 127.0.0.1 7609`:      {prints: `^1\n$`},

	// docs/sequences.md, ordered sequences
	`printf 'NEXT ticks\n' | nc -N 127.0.0.1 7609`:     {prints: `^\d+\n$`},
	`printf 'NEXT msg:alice\n' | nc -N 127.0.0.1 7609`: {prints: `^\d+\n$`},

	// docs/sequences.md, values that hide their order
	`bin/flaked seq create ticket --salt 8`:                                          {codes: []int{0, 1}},
	`printf 'NEXT ticket\n' | nc -N 127.0.0.1 7609`:                                  {prints: `^\d+\n$`},
	`bin/flaked seq create voucher --scatter 34 --start 1000000000 --max 9999999999`: {codes: []int{0, 1}},
	`printf 'NEXT voucher\n' | nc -N 127.0.0.1 7609`:                                 {prints: `^\d{10}\n$`},

	// docs/protocol.md
	`telnet 127.0.0.1 7609`:                       {shown: shape, answers: answers},
	`printf 'GET\n' | nc -N -U /tmp/flaked.sock`:  {prints: oneID},
	`bin/flaked get --addr unix:/tmp/flaked.sock`: {prints: oneID},
	`redis-cli -p 7609`: {stdin: typedLines, answers: answers,
		shown: func(out string) string { return shape(asRedis.ReplaceAllString(out, "")) }},
}

// asRedis matches what redis-cli prints on a terminal only.
var asRedis = regexp.MustCompile(`(?m)"|^\d\) |^\(error\) `)

type settings struct {
	name         string // the node's name; "" for vm
	env, replace []string
}

// settingsOf returns the settings for the commands of a document.
func settingsOf(doc string) settings {
	if doc == "docs/security.md" || doc == "docs/troubleshooting.md" {
		doc = "docs/operate.md"
	}
	return special[doc]
}

// special has the settings for single documents. Those of docs/operate.md are for three documents.
var special = map[string]settings{
	"docs/testing.md": {env: []string{"FLAKED_CONFIRM_TIME=2s"}},
	"docs/operate.md": {
		name:    "ids-3",
		env:     []string{"FLAKED_CLUSTER=orders"},
		replace: []string{"release 7", "release 0", "worker 7", "worker 0", "ids-2:7609", "127.0.0.1:1"},
	},
}

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	blanks = regexp.MustCompile(`\s+`)
)

// exact returns the output with each run of white space replaced by a blank.
func exact(out string) string { return blanks.ReplaceAllString(out, " ") }

// shape returns the output with numbers and UUIDs replaced, and white space as by exact.
func shape(out string) string {
	return exact(harness.Digits.ReplaceAllString(uuids.ReplaceAllString(out, "UUID"), "0"))
}

// head returns the first line of the output, which has the titles of a table.
func head(out string) string {
	line, _, _ := strings.Cut(out, "\n")
	return exact(line)
}

// titles returns the titles of the table of workers.
func titles(out string) string {
	_, table, _ := strings.Cut(out, "\nWORKER")
	return head("WORKER" + table)
}

// answers returns the lines of a transcript that were not typed.
func answers(transcript string) string {
	transcript = typed.ReplaceAllString(transcript, "")
	return strings.TrimSuffix(strings.TrimSpace(transcript), "Connection closed by foreign host.")
}

// typedLines returns the lines of a transcript that were typed.
func typedLines(transcript string) string {
	var lines strings.Builder
	for _, m := range typed.FindAllStringSubmatch(transcript, -1) {
		lines.WriteString(m[1] + "\n")
	}
	return lines.String()
}
