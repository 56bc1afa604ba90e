#!/usr/bin/env bash
#
# get-clients.sh installs the Redis clients that internal/clients needs, and the generators
# that internal/vectors compares flaked with. `get-clients.sh --help` says how. It leaves
# installed programs alone, so a second run costs nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-clients.sh installs programs that the tests of flaked need: the Redis
clients of internal/clients, and the ID generators of internal/vectors.

  scripts/get-clients.sh            install missing programs
  scripts/get-clients.sh --check    list missing programs, and exit 1 if there are any

redis-cli, redis-benchmark   from the package redis-tools (apt-get, as root)
node, npm                    the ones on PATH, else the packages nodejs and npm
node-redis, ioredis,         npm ci in internal/clients/node, by its lock file
valkey-glide
go-redis, rueidis,           go mod download in internal/clients/goredis and goclients
valkey-go, redigo
redis-rb                     the one of a ruby, else the package ruby-redis
haproxy                      the package haproxy
hiredis                      the packages libhiredis-dev, gcc and libc6-dev
redis-py                     the one of a python3, else the package python3-redis
phpredis                     the one of php, else the packages php-cli and php-redis
snowflake, sonyflake         go mod download in internal/vectors/foreign

Then:  FLAKED_TEST_ZK=require FLAKED_TEST_CLIENTS=require go test ./internal/clients ./internal/vectors
or:    make test PKG=./internal/clients
To run the other tests without these programs: make test FLAKED_TEST_CLIENTS=
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
internal=$(cd "$(dirname "$0")/../internal" && pwd)
clients=$internal/clients
declare -A modules=(
  [go-redis]=$clients/goredis
  ['rueidis, valkey-go and redigo']=$clients/goclients
  ['snowflake and sonyflake']=$internal/vectors/foreign
)
# A copy of the lock file that npm ci last installed. If the two differ, npm ci runs again.
installed=$clients/node/node_modules/.flaked-lock.json

packages=() missing=()
{ have redis-cli && have redis-benchmark; } || packages+=(redis-tools)
have node || packages+=(nodejs)
have npm || packages+=(npm)
# Debian's package serves Debian's Python, which may not be the first on PATH.
{ python3 -c 'import redis' || /usr/bin/python3 -c 'import redis'; } 2>/dev/null || packages+=(python3-redis)
have haproxy || packages+=(haproxy)
have php || packages+=(php-cli)
php -r 'exit(extension_loaded("redis") ? 0 : 1);' 2>/dev/null || packages+=(php-redis)
ruby -e 'require "redis"' 2>/dev/null || packages+=(ruby-redis)
have cc || packages+=(gcc libc6-dev)
[[ -e /usr/include/hiredis/hiredis.h ]] || packages+=(libhiredis-dev)
cmp -s "$clients/node/package-lock.json" "$installed" || missing+=('node-redis, ioredis and valkey-glide')
for m in "${!modules[@]}"; do
  (cd "${modules[$m]}" && GOPROXY=off GOWORK=off go list -deps -test . >/dev/null 2>&1) || missing+=("$m")
done

report_missing "${packages[@]}" "${missing[@]}"

((${#packages[@]} == 0)) || install_packages FLAKED_TEST_CLIENTS "${packages[@]}"
for m in "${missing[@]}"; do
  say "fetching $m ..."
  if [[ -n ${modules[$m]:-} ]]; then
    (cd "${modules[$m]}" && GOWORK=off quietly go mod download) || die 'go mod download failed'
  else
    (cd "$clients/node" && quietly npm ci --ignore-scripts --no-audit --no-fund) || die 'npm ci failed'
    cp "$clients/node/package-lock.json" "$installed"
  fi
done
