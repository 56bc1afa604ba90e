#!/usr/bin/env bash
#
# get-clients.sh installs the Redis clients that internal/clients needs, the generators
# that internal/vectors compares flaked with, and BuildKit's parser for
# internal/artifacts/composecheck. `get-clients.sh --help` says how. It leaves installed programs
# alone, so a second run costs nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-clients.sh installs programs that the tests of flaked need: the Redis
clients of internal/clients, the ID generators of internal/vectors, the parser of
internal/artifacts/composecheck.

  scripts/get-clients.sh            install missing programs
  scripts/get-clients.sh --check    list missing programs, and exit 1 if there are any

redis-cli, redis-benchmark   from the package redis-tools (apt-get, as root)
node, npm                    the ones on PATH, else the packages nodejs and npm
node-redis, ioredis          npm ci in internal/clients/node, by its lock file
go-redis                     go mod download in internal/clients/goredis
redis-py                     the one of a python3, else the package python3-redis
phpredis                     the one of php, else the packages php-cli and php-redis
snowflake, sonyflake         go mod download in internal/vectors/foreign
BuildKit's parser            go mod download in internal/artifacts/composecheck/dockerfile

Then:  FLAKED_TEST_ZK=require FLAKED_TEST_CLIENTS=require go test ./internal/clients ./internal/vectors ./internal/artifacts/composecheck
or:    make test PKG=./internal/clients
To run the other tests without these programs: make test FLAKED_TEST_CLIENTS=
HELP
}

say() { printf 'get-clients: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

check=no
case $#:${1:-} in
  0:) ;;
  1:--check) check=yes ;;
  1:-h | 1:--help) usage; exit 0 ;;
  *) say "unknown arguments '$*'. See $0 --help"; exit 2 ;;
esac
clients=$(cd "$(dirname "$0")/../internal/clients" && pwd)
dockerfile=$(cd "$(dirname "$0")/../internal/artifacts/composecheck/dockerfile" && pwd)
vectors=$(cd "$(dirname "$0")/../internal/vectors" && pwd)
# A copy of the lock file that npm ci last installed. If the two differ, npm ci runs again.
installed=$clients/node/node_modules/.flaked-lock.json

have() { command -v "$1" >/dev/null; }

# quietly runs a command and hides its output. It shows the last lines if the command fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" </dev/null >"$log" 2>&1 || status=$?
  ((status == 0)) || tail -n 15 "$log" >&2
  rm -f "$log"
  return "$status"
}

packages=() missing=()
{ have redis-cli && have redis-benchmark; } || packages+=(redis-tools)
have node || packages+=(nodejs)
have npm || packages+=(npm)
# Debian's package serves Debian's Python, which may not be the first on PATH.
{ python3 -c 'import redis' || /usr/bin/python3 -c 'import redis'; } 2>/dev/null || packages+=(python3-redis)
have php || packages+=(php-cli)
php -r 'exit(extension_loaded("redis") ? 0 : 1);' 2>/dev/null || packages+=(php-redis)
cmp -s "$clients/node/package-lock.json" "$installed" || missing+=('node-redis and ioredis')
(cd "$clients/goredis" && GOPROXY=off GOWORK=off go list -deps . >/dev/null 2>&1) || missing+=(go-redis)
(cd "$vectors/foreign" && GOPROXY=off GOWORK=off go list -deps . >/dev/null 2>&1) || missing+=('snowflake and sonyflake')
(cd "$dockerfile" && GOPROXY=off GOWORK=off go list -deps . >/dev/null 2>&1) || missing+=("BuildKit's parser")

if [[ $check == yes ]]; then
  ((${#packages[@]} + ${#missing[@]} == 0)) && exit 0
  for m in "${packages[@]}" "${missing[@]}"; do say "missing: $m"; done
  exit 1
fi

if ((${#packages[@]} > 0)); then
  if ((EUID != 0)) || ! have apt-get; then
    die "install ${packages[*]} (on Debian: sudo apt-get install ${packages[*]}), or skip these tests: make test FLAKED_TEST_CLIENTS="
  fi
  say "installing ${packages[*]} with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  # The old package lists may suffice if they cannot be refreshed.
  quietly apt-get -o DPkg::Lock::Timeout=120 update || say 'apt-get update failed, trying with the existing package lists'
  quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${packages[@]}" ||
    die "apt-get could not install ${packages[*]}"
fi
for m in "${missing[@]}"; do
  say "fetching $m ..."
  if [[ $m == go-redis ]]; then
    (cd "$clients/goredis" && GOWORK=off quietly go mod download) || die 'go mod download failed'
  elif [[ $m == 'snowflake and sonyflake' ]]; then
    (cd "$vectors/foreign" && GOWORK=off quietly go mod download) || die 'go mod download failed'
  elif [[ $m == "BuildKit's parser" ]]; then
    (cd "$dockerfile" && GOWORK=off quietly go mod download) || die 'go mod download failed'
  else
    (cd "$clients/node" && quietly npm ci --ignore-scripts --no-audit --no-fund) || die 'npm ci failed'
    cp "$clients/node/package-lock.json" "$installed"
  fi
done
