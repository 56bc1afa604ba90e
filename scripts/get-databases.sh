#!/usr/bin/env bash
#
# get-databases.sh installs the servers from which internal/e2e imports sequences.
# `get-databases.sh --help` says how. It leaves installed programs alone, so a second run costs
# nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-databases.sh installs programs that `make imports` needs. The test starts servers of its
own, with data in a temporary directory, and uses none that run already.

  scripts/get-databases.sh            install missing programs
  scripts/get-databases.sh --check    list missing programs, and exit 1 if there are any

mariadbd, mariadb          from the packages mariadb-server-core and mariadb-client-core
postgres, psql             from the package postgresql. Debian also makes a server of it, on port 5432
redis-server, redis-cli    from the package redis-server. Debian also starts it, on port 6379
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"

packages=()
{ have mariadbd && have mariadb-install-db; } || packages+=(mariadb-server-core)
have mariadb || packages+=(mariadb-client-core)
{ compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && have psql; } || packages+=(postgresql)
{ have redis-server && have redis-cli; } || packages+=(redis-server)

report_missing "${packages[@]}"
((${#packages[@]} == 0)) || install_packages FLAKED_TEST_IMPORTS "${packages[@]}"
