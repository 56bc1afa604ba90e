# `make` lists the targets. It needs Go, bash and git. A target that needs another program
# installs it, or names it in its error message.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# One shell runs a whole recipe, so that its lines share variables and traps.
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Go is often installed outside of PATH.
GO := $(or $(shell command -v go),/usr/local/go/bin/go)
export PATH := $(dir $(GO)):$(PATH)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PKG ?= ./...
BENCH_PKG ?= . ./worker/... ./timeguard/... ./localcache/... ./lineproto/...
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 darwin/amd64
# The time of all files in a release: the time of the commit. Without git 1980-01-02, the first day that all archives know.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315619200)
CLIENTS ?= clients
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
N ?= 1000000
FIRST ?= $(shell date +%s)
FOR ?= 30m
SEED ?= 0
ONLY ?=
SECURE ?=
CUTS ?= 20
REPORT ?= bin/chaos
# If one of these is empty, tests skip the clients or tools that are missing.
FLAKED_TEST_CLIENTS ?=
FLAKED_TEST_TOOLS ?= require
SCRIPTS := $(wildcard scripts/*.sh examples/*/*.sh) bench/run.sh bench/growth.sh bench/fair.sh bench/lib.sh .ci/run deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm internal/check/deploy/testdata/zookeeper.sh internal/check/machines/testdata/init

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## bin/flaked: static, stamped with the version from git
	@mkdir -p bin
	set -x
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/flaked ./cmd/flaked

# A drawing of Graphviz gets its size in pixels, fonts of other systems, a panel that a dark page does not
# hide, and one title: those of single boxes and arrows are names of the source.
.PHONY: pictures
pictures: ## docs/pictures/*.svg, drawn by Graphviz from the .dot files beside them
	@command -v dot >/dev/null || { echo 'make pictures: there is no dot: apt-get install graphviz fonts-dejavu-core' >&2; exit 1; }
	for source in docs/pictures/*.dot; do
	  dot -Tsvg "$$source" | sed -zE 's/<!(DOCTYPE|--)[^>]*>\n//g; s/\n<title>[^ <]*<\/title>//g; s/"transparent"/"none"/g
	    s/"DejaVu Sans"/"DejaVu Sans,Verdana,Helvetica,Arial,sans-serif"/g
	    s|<svg width="([0-9]+)pt" height="([0-9]+)pt"\n[^>]* (xmlns=[^>]*)>\n(<g [^>]*>)\n(<title>[^<]*</title>)\n<polygon [^>]*>|<svg \3 viewBox="0 0 \1 \2" width="\1" height="\2" role="img">\n\5\n<rect width="100%" height="100%" rx="10" fill="#ffffff" stroke="#d0d7de" stroke-width="2"/>\n\4|' >"$${source%.dot}.svg"
	done

# $(call INSTALL,PROGRAM) tries to install a missing program from the package of its name: as root,
# with apt-get. The recipe must look again whether the program is there.
define INSTALL
if ! command -v $(1) >/dev/null && (( EUID == 0 )) && command -v apt-get >/dev/null; then
  echo 'installing $(1) ...'
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(1); } \
    </dev/null >/dev/null 2>&1 || true
fi
endef

.PHONY: release
release: ## archives, Debian packages, images, SBOMs, the chart, the clients, in dist/. PLATFORMS=linux/amd64 for some
	scripts/release.sh '$(VERSION)' $(SOURCE_DATE_EPOCH) dist $(PLATFORMS) $(CLIENTS)

.PHONY: check-release
check-release: ## two releases: equal bytes, licences, one version, SBOMs. CLIENTS= leaves the clients out, FRESH=1 is slower
	FRESH=$(FRESH) scripts/check-release.sh '$(VERSION)' $(SOURCE_DATE_EPOCH) $(PLATFORMS) $(CLIENTS)
	FLAKED_TEST_DIST=dist $(GO) test -vet=off -count=1 ./internal/check/deploy -run Release

define RUN_HELP

  In another terminal:
    printf 'GET\n' | nc -N @ADDRESS@      one ID
    nc @ADDRESS@                          type GET, GET 5, HELP
    bin/flaked status                          who holds which worker

  Ctrl-C stops flaked. ZooKeeper stays up:
    scripts/zk-dev.sh stop                     ends it; the next `make run` goes on where this one stopped
    scripts/zk-dev.sh stop --wipe              ends it and forgets everything, the node's identity included

endef
export RUN_HELP

# The node's state lies beside ZooKeeper's data, so that `stop --wipe` removes both. Neither
# is of use without the other.
.PHONY: run
run: build ## one node on a local ZooKeeper; Ctrl-C stops it. ARGS='--flag ...' adds flags
	@zk=$$(scripts/zk-dev.sh start)
	eval "$$zk"
	state=$$(scripts/zk-dev.sh dir)/state
	set -- $(ARGS)
	address='127.0.0.1 7609'
	for arg; do
	  case $${previous-} in --listen) address=$$arg ;; esac
	  case $$arg in --listen=*) address=$${arg#*=} ;; esac
	  previous=$$arg
	done
	case $$address in unix:*) address="-U $${address#unix:}" ;; *:*) address="$${address%:*} $${address##*:}" ;; esac
	printf '%s\n' "$${RUN_HELP//@ADDRESS@/$$address}"
	# exec, so that Ctrl-C reaches flaked directly. ZooKeeper does not get it, because it
	# runs in a session of its own.
	exec bin/flaked serve --zk "$$FLAKED_ZK" --bootstrap \
	  --heartbeat 200ms --confirm-time 800ms --state-dir "$$state" $(ARGS)

# Gets ZooKeeper, clients and tools, so that tests skip nothing.
define TEST_NEEDS
zk=$$(scripts/zk-dev.sh install)
eval "$$zk"
export FLAKED_TEST_ZK=require FLAKED_TEST_CLIENTS=$(FLAKED_TEST_CLIENTS) FLAKED_TEST_TOOLS=$(FLAKED_TEST_TOOLS)
if [[ -n $$FLAKED_TEST_CLIENTS ]]; then scripts/get-clients.sh; fi
if [[ -n $$FLAKED_TEST_TOOLS ]]; then scripts/get-tools.sh; fi
endef

.PHONY: test
test: ## everything, with the race detector, against a real ZooKeeper. PKG=./worker for a part
	@cc=$$($(GO) env CC)
	if ! command -v "$${cc%% *}" >/dev/null; then
	  echo "make test: the race detector needs a C compiler, and there is no $$cc: apt-get install gcc libc6-dev, or make test-fast" >&2
	  exit 1
	fi
	if [[ $$($(GO) env CGO_ENABLED) != 1 ]]; then
	  echo 'make test: the race detector needs cgo, and CGO_ENABLED=0 switches it off: unset it, or make test-fast' >&2
	  exit 1
	fi
	$(TEST_NEEDS)
	set -x
	# -count=1, because the end-to-end tests build the binary and the test cache does not
	# see its changes.
	$(GO) test -race -vet=off -count=1 -timeout 10m $(TESTFLAGS) $(PKG)
	# What runs in one goroutine: the race detector would only cost time.
	if [[ $(PKG) == ./... ]]; then
	  $(GO) test -vet=off -count=1 -timeout 10m ./internal/core/node -run '^TestSimulation$$' -sim.count=3000
	  $(GO) test -vet=off -count=1 -timeout 10m ./internal/core/node -run '^TestSimulationOfOtherWorlds$$' -sim.count=40
	  $(GO) test -vet=off -count=1 -timeout 10m ./internal/core/seq -sim.count=500
	  # With 32 bits: an int has no room for an ID. An amd64 runs these programs.
	  if [[ $$($(GO) env GOARCH) == amd64 ]]; then
	    GOARCH=386 CGO_ENABLED=0 $(GO) test -short -vet=off -count=1 -timeout 10m ./worker ./lineproto
	  fi
	fi

# A program with a node inside may have one processor of Go. There a loop that spins or waits for another one shows.
.PHONY: test-one-cpu
test-one-cpu: ## lineproto and node with GOMAXPROCS=1, as in a program on one core
	$(GO) test -exec 'env GOMAXPROCS=1' -vet=off -count=1 -timeout 10m $(TESTFLAGS) ./lineproto/... ./internal/core/node/...

.PHONY: test-clients
test-clients: build ## the clients of clients/: their own tests, the cases, real nodes. ONLY='python node' for some
	@mkdir -p bin
	zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	FLAKED_TEST_ZK=require scripts/test-clients.sh $(ONLY)

.PHONY: test-client-cases
test-client-cases: ## only the cases of all clients, and real nodes: what CI has time for
	@FLAKED_TEST_SUITES=no $(MAKE_COMMAND) test-clients

.PHONY: test-fast
test-fast: ## what needs no ZooKeeper, without the race detector
	env -u FLAKED_TEST_ZK -u FLAKED_TEST_CLIENTS -u FLAKED_TEST_TOOLS $(GO) test -vet=off $(TESTFLAGS) $(PKG)

.PHONY: processors
processors: ## other processors and systems: builds, tests under qemu, the binary on a real ZooKeeper (minutes)
	@zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	FLAKED_TEST_ZK=require scripts/check-processors.sh

# As root on Debian the first run installs podman, and makes base images (minutes).
.PHONY: containers
containers: ## the image, the Compose file, the manifests, and the files of a release, run by podman (minutes)
	@zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	if (( EUID != 0 )) || ! command -v apt-get >/dev/null; then
	  echo 'make containers: NOT RUN: it needs root on Debian' >&2
	  exit
	fi
	engine=$$(scripts/get-containers.sh) || {
	  (( $$? == 3 )) || exit 1
	  echo 'make containers: NOT RUN: see above' >&2
	  exit
	}
	eval "$$engine"
	# One run at a time: all use the same names of images, and the ports of docker-compose.yml. Containers
	# of a killed run must not keep the lock, so no child inherits it.
	set -x
	flock --close "$${CONTAINERS_STORAGE_CONF%/*}/tests.lock" \
	  env FLAKED_TEST_ZK=require FLAKED_TEST_CONTAINERS=require $(GO) test -vet=off -count=1 -timeout 20m -v ./internal/check/deploy

# $(call prepared,NAME) evaluates what scripts/get-NAME.sh prints. The target ends well on a machine that cannot run it.
define prepared
settings=$$(scripts/get-$(1).sh) || {
  (( $$? == 3 )) || exit 1
  echo 'make $@: NOT RUN: see above' >&2
  exit
}
eval "$$settings"
endef

# As root on Debian the first run installs QEMU and unpacks a kernel.
.PHONY: machines
machines: ## virtual machines: power cuts, standing still, a resumed snapshot, a clone (half an hour). CUTS=20 on each filesystem, ONLY='PowerCuts'
	@zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	$(call prepared,machines)
	set -x
	FLAKED_TEST_ZK=require $(GO) test -vet=off -count=1 -timeout 90m -v ./internal/check/machines -run '$(ONLY)' -cuts $(CUTS)

# As root on Debian the first run builds Kubernetes. Only the compiler needs the network, which the cluster does not have.
.PHONY: cluster
cluster: ## the Helm charts in a Kubernetes cluster of three nodes (40 minutes, once 15 more). ONLY=pattern for some tests
	@$(call prepared,cluster)
	zk=$$(scripts/zk-dev.sh install --version "$$(scripts/zk-dev.sh versions | awk '{ print $$NF }')")
	eval "$$zk"
	mkdir -p bin
	$(GO) test -vet=off -c -o bin/cluster.test ./internal/check/cluster
	cd internal/check/cluster
	set -x
	timeout -k 30 95m ../../../scripts/cluster.sh ../../../bin/cluster.test -test.v -test.timeout 90m -test.run '$(ONLY)'

# The database of weaknesses is asked over the network. Without it nothing is checked.
.PHONY: vulncheck
vulncheck: ## known weaknesses of the code that flaked links. VULNDB=file:///dir for a copy of the database
	@mkdir -p bin
	if $(GO) run $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./... 2>&1 | tee bin/vulncheck.txt; then exit; fi
	# govulncheck ends with 3 if it found something, and `go run` prints that. The text of a weakness
	# may contain the words of an error.
	if ! grep -qx 'exit status 3' bin/vulncheck.txt && grep -qE 'fetching vulnerabilities|dial tcp|no such host|connection refused|i/o timeout' bin/vulncheck.txt; then
	  echo 'make vulncheck: NOT CHECKED: the database cannot be reached' >&2
	  exit
	fi
	exit 1

# A module of its own. The first run downloads Kubernetes' code (minutes).
.PHONY: kubernetes
kubernetes: ## the Helm chart, as helm and the API server see it
	@cd internal/check/kubernetes
	export GOWORK=off CGO_ENABLED=0
	set -x
	$(GO) vet .
	$(GO) test -count=1 .

.PHONY: mutants
mutants: ## take safeguards out, one at a time: the tests have to notice (minutes)
	FLAKED_MUTANTS=1 $(GO) test -vet=off -count=1 -timeout 60m -v ./internal/check/mutants -run MutantsAreCaught

# An input that fails stays in testdata/fuzz of its package, and every later `go test` runs it. Before 1.27, Go may call
# the end of the time a failure of the target (go.dev/issue/75804): then the target runs again.
.PHONY: fuzz
fuzz: ## every fuzz target in turn. FOR=30m is the time for all, PKG=./lineproto for a part
	@[[ '$(FOR)' =~ ^([0-9]+)([smh])$$ ]] || { echo 'make fuzz: FOR must be a number and s, m or h, such as 30m' >&2; exit 1; }
	declare -A unit=([s]=1 [m]=60 [h]=3600)
	seconds=$$(( $${BASH_REMATCH[1]} * $${unit[$${BASH_REMATCH[2]}]} )) failed=
	targets=$$($(GO) test -vet=off -list '^Fuzz' $(PKG) | awk '/^Fuzz/ { all[n++] = $$1 } /^ok/ { while (n) print $$2, all[--n] }')
	each=$$(( seconds / $$(wc -l <<<"$$targets") ))
	while read -r package target; do
	  printf '\n== %s %s: %d s\n' "$$package" "$$target" $$each
	  for try in 1 2 3; do
	    said=$$($(GO) test -vet=off -run '^$$' -fuzz "^$$target$$" -fuzztime $${each}s -fuzzminimizetime 1s $(or $(TESTFLAGS),-parallel 2) "$$package" </dev/null 2>&1 |
	      awk '/^fuzz: elapsed/ { last = $$0; next } /^(PASS|ok)/ { next } { print } END { print last }') && code=0 || code=1
	    echo "$$said"
	    [[ $$code == 1 && $$said == *'    context deadline exceeded'* && $$said != *'Failing input'* ]] || break
	  done
	  (( code == 0 )) || failed+=" $$target"
	done <<<"$$targets"
	if [[ -n $$failed ]]; then echo "make fuzz: FAILED:$$failed" >&2; exit 1; fi

# Debian's g++ brings gcc and the headers of the C library.
.PHONY: spec
spec: ## the models of docs/spec, checked by Spin: the promise, and a run that breaks it without each rule (minutes)
	@$(call INSTALL,spin)
	if ! command -v gcc >/dev/null; then
	$(call INSTALL,g++)
	fi
	if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then
	  echo 'make spec: it needs Spin and gcc: apt-get install spin gcc libc6-dev' >&2
	  exit 1
	fi
	scripts/spec.sh

# Each line is a make of its own, so that one failure does not hide the others.
.PHONY: nightly
nightly: ## the slow checks: mutants, models, campaigns, fuzzing, machines, a cluster, containers, clients, two releases (three hours)
	@failed=
	mkdir -p bin
	export FLAKED_RAN=$(CURDIR)/bin/ran.txt
	: >"$$FLAKED_RAN"
	zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	check() { printf '\n== %s\n' "$$*"; "$$@" || failed+=" [$$*]"; }
	check $(MAKE_COMMAND) mutants
	check $(MAKE_COMMAND) spec
	check env FLAKED_TEST_ZK=require FLAKED_MUTANTS=1 $(GO) test -vet=off -count=1 -timeout 45m ./internal/check/mutants -run CampaignCatchesMutants
	check $(MAKE_COMMAND) zookeepers FOR=4m CUTS=1
	check $(MAKE_COMMAND) fuzz FOR=10m
	check $(MAKE_COMMAND) processors
	check $(MAKE_COMMAND) kubernetes
	check $(MAKE_COMMAND) machines
	check $(MAKE_COMMAND) cluster
	check $(MAKE_COMMAND) check-release FRESH=1
	check env FLAKED_TEST_DIST=dist $(MAKE_COMMAND) containers
	check scripts/get-clients.sh
	check env FLAKED_TEST_VERSIONS=1 $(MAKE_COMMAND) test-clients
	check env FLAKED_TEST_ZK=require FLAKED_TEST_CLIENTS=require $(GO) test -vet=off -count=1 ./internal/check/e2e -run "Redis|ExamplesOfClients"
	[[ $$failed == *ExamplesOfClients* ]] || sed -n 's/.*"ioredis": "\(.*\)".*/ioredis \1/p' examples/node/package.json >>"$$FLAKED_RAN"
	check $(GO) test -vet=off -count=1 ./internal/check/docs -run TestedVersions -args -ran "$$FLAKED_RAN"
	check env FLAKED_TEST_ZK=require FLAKED_TEST_LONG=1 $(GO) test -vet=off -count=1 ./internal/check/e2e -run 'Rolling|ValuesFlow'
	if [[ -n $$failed ]]; then echo "make nightly: FAILED:$$failed" >&2; exit 1; fi

# By default FIRST is the current time, so that each run plays other histories.
.PHONY: chaos-sim
chaos-sim: ## histories of the simulation until one goes wrong. N=100000 FIRST=n
	@mkdir -p bin
	set -x
	$(GO) test -vet=off -count=1 -timeout 0 -v ./internal/core/seq -run '^TestSimulation$$' \
	  -sim.first=$(FIRST) -sim.count=$$(( $(N) / 10 + 1 )) -sim.progress=10s -sim.dir $(CURDIR)/bin
	$(GO) test -vet=off -count=1 -timeout 0 -v ./internal/core/node -run '^TestSimulation$$' \
	  -sim.first=$(FIRST) -sim.count=$(N) -sim.progress=10s -sim.dir $(CURDIR)/bin

.PHONY: chaos-worlds
chaos-worlds: ## the same in clusters of other layouts and rollback policies. N=2000 FIRST=n
	$(GO) test -vet=off -count=1 -timeout 0 -v ./internal/core/node -run '^TestSimulationOfOtherWorlds$$' -sim.first=$(FIRST) -sim.count=$(N)

.PHONY: chaos
chaos: ## five nodes and three ZooKeepers under faults. FOR=30m SEED=n ONLY='kill,disk' REPORT=dir SECURE=1: TLS, digest
	@zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	export FLAKED_TEST_ZK=require
	set -x
	$(GO) test -vet=off -count=1 -timeout 0 -v ./internal/check/campaign -run 'TestCampaign$$' \
	  -chaos.for $(FOR) -chaos.seed $(SEED) -chaos.only '$(ONLY)' -chaos.report $(abspath $(REPORT)) -chaos.secure=$(if $(SECURE),true,false)

# One process lives as long as the run. The report is bin/soak/report.txt.
.PHONY: soak
soak: ## a long campaign: leases of a day, clocks that drift, a fault every two minutes, and what nodes use. FOR=3h SEED=n
	@zk=$$(scripts/zk-dev.sh install)
	eval "$$zk"
	export FLAKED_TEST_ZK=require
	set -x
	$(GO) test -vet=off -count=1 -timeout 0 -v ./internal/check/campaign -run 'TestCampaign$$' \
	  -chaos.for $(FOR) -chaos.seed $(SEED) -chaos.lease 24h -chaos.soak 2m -chaos.report $(abspath bin/soak)

# The logs and reports are in bin/zookeepers.
.PHONY: zookeepers
zookeepers: ## the campaign, and power cuts of virtual machines, on each tested release of ZooKeeper. FOR=10m CUTS=3 each
	@mkdir -p bin/zookeepers
	failed=
	for version in $$(scripts/zk-dev.sh versions); do
	  zk=$$(scripts/zk-dev.sh install --version "$$version") || { echo "ZooKeeper $$version: NOT RUN: see above"; continue; }
	  eval "$$zk"
	  secure= log=bin/zookeepers/$$version said=
	  rm -rf "$$log" "$$log".log "$$log"-machines.log
	  case $$version in 3.9.*) secure=1 ;; esac
	  $(MAKE_COMMAND) chaos SECURE=$$secure REPORT="$$log" >"$$log.log" 2>&1 || said=', the campaign FAILED'
	  $(MAKE_COMMAND) machines ONLY=PowerCuts >"$$log-machines.log" 2>&1 || said+=', machines FAILED'
	  cuts="$$(grep -c 'cut [0-9]*: ready after' "$$log-machines.log" || :) power cuts"
	  if grep -q 'NOT RUN' "$$log-machines.log"; then cuts="power cuts NOT RUN: see $$log-machines.log"; fi
	  echo "$$(sed -n '1s/^[^:]*: //p' "$$log/report.txt" || echo "ZooKeeper $$version"); $$cuts$$said"
	  [[ -z $${FLAKED_RAN:-} || -n $$said || $$cuts == *'NOT RUN'* ]] || echo "zookeeper $$version" >>"$$FLAKED_RAN"
	  if [[ -n $$said ]]; then
	    failed+=" $$version"
	    tail -n 30 "$$log.log" "$$log-machines.log"
	  fi
	done
	if [[ -n $$failed ]]; then echo "make zookeepers: FAILED:$$failed: see bin/zookeepers" >&2; exit 1; fi

# What the scripts of bench/ run.
.PHONY: bench-programs
bench-programs: build
	@cc=$$(command -v cc || command -v gcc || command -v clang) || {
	  echo 'make bench: the floor and the load are in C, and there is no compiler: apt-get install gcc libc6-dev' >&2; exit 1; }
	"$$cc" -O2 -Wall -Wextra -o bin/floor bench/floor/epoll.c
	"$$cc" -O2 -Wall -Wextra -o bin/load bench/load/load.c -lm
	$(GO) build -o bin/ ./bench/...

.PHONY: bench
bench: bench-programs ## flaked beside Redis, uid-generator and floors (10 minutes). BEFORE=path: and another flaked. QUICK=1: a look
	@$(if $(QUICK),ROUNDS=1 SCALE=10) bench/run.sh $(BEFORE)

.PHONY: bench-growth
bench-growth: bench-programs ## what one more connection, sequence and node costs (10 minutes). QUICK=1: a look
	@$(if $(QUICK),ROUNDS=1 SCALE=10 NODES=16) bench/growth.sh

.PHONY: bench-fair
bench-fair: bench-programs ## single requests beside bad and greedy clients (4 minutes). QUICK=1: a look
	@$(if $(QUICK),ROUNDS=1 SCALE=50) bench/fair.sh

.PHONY: bench-ordered
bench-ordered: build ## ordered sequences beside segment ones: three nodes, two cores (a minute)
	dir=$$(mktemp -d)
	trap 'scripts/zk-dev.sh stop --wipe --dir "$$dir/zk" >/dev/null 2>&1; rm -rf "$$dir"' EXIT
	eval "$$(scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$$dir/zk")"
	$(GO) run ./bench/ordered -zk "$$FLAKED_ZK"

.PHONY: bench-names
bench-names: build ## what 1,000 to 100,000 sequences in use cost a node (30 minutes). NAMES=1000: a part. FLAKED=path: another flaked
	dir=$$(mktemp -d)
	trap 'scripts/zk-dev.sh stop --wipe --dir "$$dir/zk" >/dev/null 2>&1; rm -rf "$$dir"' EXIT
	eval "$$(ZK_DEV_HEAP=2g scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$$dir/zk")"
	TMPDIR=$$dir $(GO) run ./bench/names -zk "$$FLAKED_ZK" $(if $(NAMES),-names $(NAMES)) $(if $(FLAKED),-flaked $(FLAKED))

.PHONY: bench-go
bench-go: ## benchmarks in process, and the generator beside other libraries'. BENCH_PKG=./worker for a part
	$(GO) test -run '^$$' -bench . -benchmem $(BENCH_PKG)
	cd bench/generators
	GOWORK=off $(GO) test -run '^$$' -bench . -benchmem .

.PHONY: lint
lint: ## gofmt, go vet, staticcheck and shellcheck
	@unformatted=$$(gofmt -l .)
	if [[ -n $$unformatted ]]; then
	  printf 'not formatted (gofmt -w):\n%s\n' "$$unformatted" >&2
	  exit 1
	fi
	$(call INSTALL,shellcheck)
	if command -v shellcheck >/dev/null; then
	  (set -x; shellcheck -x $(SCRIPTS))
	else
	  echo 'shellcheck is not installed: the scripts are not checked' >&2
	fi
	set -x
	$(GO) vet ./...
	# Constants and fields that only fit 64 bits do not compile there.
	GOARCH=arm CGO_ENABLED=0 $(GO) vet ./cmd/flaked ./client
	# Commands that ask a node work on Windows, too.
	GOOS=windows CGO_ENABLED=0 $(GO) build ./...
	$(GO) run $(STATICCHECK) ./...
	# Modules of their own are checked only if their libraries have been downloaded.
	for module in bench/generators; do
	  if (cd $$module && GOPROXY=off GOWORK=off $(GO) list -deps -test . >/dev/null 2>&1); then
	    (cd $$module && GOWORK=off $(GO) vet ./...)
	  fi
	done

.PHONY: clean
clean: ## remove what was built (ZooKeeper's data: scripts/zk-dev.sh stop --wipe)
	rm -rf bin dist .run coverage.* *.out *.prof *.test
