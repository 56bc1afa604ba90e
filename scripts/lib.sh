# shellcheck shell=bash
# The functions that the scripts beside this file share. Their messages go to stderr.

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

# arguments sets check to yes if the argument is --check, and prints usage for --help.
arguments() {
  check=no
  case $#:${1:-} in
    0:) ;;
    1:--check) check=yes ;;
    1:-h | 1:--help) usage; exit 0 ;;
    *) say "unknown arguments '$*'. See $0 --help"; exit 2 ;;
  esac
}

# ran NAME VERSION notes that this version has passed its tests. make nightly sets FLAKED_RAN to the file of the notes,
# and compares it with the table in docs/clients.md.
ran() { [[ -z ${FLAKED_RAN:-} ]] || printf '%s %s\n' "$1" "$2" >>"$FLAKED_RAN"; }

# ran_packages PYTHON does the same for the packages that this Python has.
ran_packages() {
  [[ -z ${FLAKED_RAN:-} ]] || "$1" -m pip freeze --disable-pip-version-check | sed -n 's/==/ /p' >>"$FLAKED_RAN"
}

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

# report_missing ends the script if it was called with --check. It prints what is missing, and
# exits with 1 if that is anything.
report_missing() {
  [[ $check == yes ]] || return 0
  for m; do say "missing: $m"; done
  exit $(($# > 0))
}

# The old package lists may suffice if they cannot be refreshed.
refresh_packages() {
  quietly apt-get -o DPkg::Lock::Timeout=120 update || say 'apt-get update failed, trying with the existing package lists'
}

# install_packages VARIABLE PACKAGE... installs packages with apt-get, as root. VARIABLE is the
# one of `make test` that skips the tests.
install_packages() {
  local skip=$1
  shift
  if ((EUID != 0)) || ! have apt-get; then
    die "install $* (on Debian: sudo apt-get install $*), or skip these tests: make test $skip="
  fi
  say "installing $* with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  refresh_packages
  quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" || die "apt-get could not install $*"
}
