#!/usr/bin/env bash
#
# get-tools.sh installs the programs that check flaked's files for other programs.
# It leaves installed programs alone, so a second run costs nothing. Its messages go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
get-tools.sh installs programs that check flaked's files.

  scripts/get-tools.sh            install missing programs (apt-get, as root)
  scripts/get-tools.sh --check    list missing programs, and exit 1 if there are any

systemd-analyze   deploy/systemd                      internal/ops/host/systemd
promtool          deploy/prometheus                   internal/check/e2e
nc curl openssl redis-cli   the commands of the documents   internal/check/e2e

promtool is unpacked from Debian's package prometheus into ~/.cache/flaked/bin,
because an installation of that package would start a Prometheus.

To run the other tests without these programs: make test FLAKED_TEST_TOOLS=
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
packages=()
# needs PROGRAM PACKAGE adds PACKAGE to packages if PROGRAM is missing.
needs() { have "$1" || packages+=("$2"); }
needs systemd-analyze systemd
needs nc netcat-openbsd
needs curl curl
needs openssl openssl
needs redis-cli redis-tools

# Tests look for promtool here if it is not on PATH.
promtool=${XDG_CACHE_HOME:-$HOME/.cache}/flaked/bin/promtool
missing=()
have promtool || [[ -x $promtool ]] || missing+=(promtool)

report_missing "${packages[@]}" "${missing[@]}"

# get_promtool unpacks promtool. It does not need root, but package lists that root has
# downloaded.
get_promtool() {
  local dir
  if ! have apt-get || ! have dpkg-deb; then
    die 'put promtool on PATH (Debian has it in the package prometheus), or skip these tests: make test FLAKED_TEST_TOOLS='
  fi
  say 'unpacking promtool from the package prometheus ...'
  dir=$(mktemp -d)
  chmod 755 "$dir" # apt-get downloads as another user
  ((EUID != 0)) || refresh_packages
  (cd "$dir" && quietly apt-get download prometheus) || die 'apt-get could not download prometheus'
  dpkg-deb --fsys-tarfile "$dir"/prometheus_*.deb | tar -x -C "$dir" ./usr/bin/promtool
  mkdir -p "${promtool%/*}"
  mv "$dir/usr/bin/promtool" "$promtool.$$"
  mv "$promtool.$$" "$promtool" # atomic
  rm -rf "$dir"
}
((${#missing[@]} == 0)) || get_promtool
((${#packages[@]} == 0)) || install_packages FLAKED_TEST_TOOLS "${packages[@]}"
