#!/usr/bin/env bash
#
# get-clients.sh installs the Redis clients that internal/check/e2e needs. It leaves installed
# programs alone, so a second run costs nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-clients.sh installs the Redis clients that flaked is tested with.

  scripts/get-clients.sh            install missing programs
  scripts/get-clients.sh --check    list missing programs, and exit 1 if there are any

redis-cli, redis-benchmark   from the package redis-tools (apt-get, as root)
ioredis                      npm ci in examples/node; node and npm from PATH, or their packages
redis-py                     the one of a python3, else the package python3-redis
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
node=$(cd "$(dirname "$0")/../examples/node" && pwd)
# A copy of the lock file that npm ci last installed. If the two differ, npm ci runs again.
installed=$node/node_modules/.flaked-lock.json

packages=() missing=()
{ have redis-cli && have redis-benchmark; } || packages+=(redis-tools)
have node || packages+=(nodejs)
have npm || packages+=(npm)
# Debian's package serves Debian's Python, which may not be the first on PATH.
{ python3 -c 'import redis' || /usr/bin/python3 -c 'import redis'; } 2>/dev/null || packages+=(python3-redis)
cmp -s "$node/package-lock.json" "$installed" || missing+=(ioredis)

report_missing "${packages[@]}" "${missing[@]}"

((${#packages[@]} == 0)) || install_packages FLAKED_TEST_CLIENTS "${packages[@]}"
if ((${#missing[@]} > 0)); then
  say 'fetching ioredis ...'
  (cd "$node" && quietly npm ci --ignore-scripts --no-audit --no-fund) || die 'npm ci failed'
  cp "$node/package-lock.json" "$installed"
fi
