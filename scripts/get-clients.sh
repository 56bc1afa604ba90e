#!/usr/bin/env bash
#
# get-clients.sh installs the Redis clients that internal/clients needs, and the generators
# that internal/vectors compares flaked with. It leaves installed programs alone, so a second
# run costs nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-clients.sh installs the clients and generators that flaked is tested with.

  scripts/get-clients.sh            install missing programs
  scripts/get-clients.sh --check    list missing programs, and exit 1 if there are any

redis-cli, redis-benchmark   from the package redis-tools (apt-get, as root)
ioredis                      npm ci in examples/node; node and npm from PATH, or their packages
redis-py                     the one of a python3, else the package python3-redis
snowflake, sonyflake         go mod download in internal/vectors/foreign
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
root=$(cd "$(dirname "$0")/.." && pwd)
foreign=$root/internal/vectors/foreign
node=$root/examples/node
# A copy of the lock file that npm ci last installed. If the two differ, npm ci runs again.
installed=$node/node_modules/.flaked-lock.json

packages=() missing=()
{ have redis-cli && have redis-benchmark; } || packages+=(redis-tools)
have node || packages+=(nodejs)
have npm || packages+=(npm)
# Debian's package serves Debian's Python, which may not be the first on PATH.
{ python3 -c 'import redis' || /usr/bin/python3 -c 'import redis'; } 2>/dev/null || packages+=(python3-redis)
cmp -s "$node/package-lock.json" "$installed" || missing+=(ioredis)
(cd "$foreign" && GOPROXY=off GOWORK=off go list -deps -test . >/dev/null 2>&1) || missing+=('snowflake and sonyflake')

report_missing "${packages[@]}" "${missing[@]}"

((${#packages[@]} == 0)) || install_packages FLAKED_TEST_CLIENTS "${packages[@]}"
for m in "${missing[@]}"; do
  say "fetching $m ..."
  if [[ $m == ioredis ]]; then
    (cd "$node" && quietly npm ci --ignore-scripts --no-audit --no-fund) || die 'npm ci failed'
    cp "$node/package-lock.json" "$installed"
  else
    (cd "$foreign" && GOWORK=off quietly go mod download) || die 'go mod download failed'
  fi
done
