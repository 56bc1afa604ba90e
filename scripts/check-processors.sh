#!/usr/bin/env bash
#
# check-processors.sh builds flaked for other processors and systems, and runs tests of these
# builds. `check-processors.sh --help` says which. `make processors` calls it.
set -euo pipefail

usage() {
  cat <<'HELP'
check-processors.sh checks flaked on processors and systems that this machine does not have.

  scripts/check-processors.sh            check (it needs a ZooKeeper: make processors)
  scripts/check-processors.sh --check    list missing programs, and exit 1 if there are any

arm64, s390x    the core's tests, and the program on a real ZooKeeper, under qemu.
                s390x is big-endian
arm             tests of the packages worker and lineproto, under qemu
386             the core's tests, without qemu (on amd64 only)
darwin          everything builds
windows         everything builds; package client and the command line pass go vet

qemu-*-static comes from the package qemu-user-static.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
cd "$(dirname "$0")/.."

declare -A emulator=([arm64]=qemu-aarch64-static [arm]=qemu-arm-static [s390x]=qemu-s390x-static)
packages=()
for program in "${emulator[@]}"; do
  have "$program" || packages=(qemu-user-static)
done
report_missing "${packages[@]}"
((${#packages[@]} == 0)) || install_packages 'and leave out make processors' "${packages[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0

# tested runs a program of tests. If it fails, tested prints the tests that failed and what they
# say. The end of the output would be a log of ZooKeeper.
tested() {
  local log=$work/log-$BASHPID status=0
  "$@" </dev/null >"$log" 2>&1 || status=$?
  ((status == 0)) || grep -E -A4 '^ *(--- FAIL|panic:|[a-z_0-9]+_test\.go:)' "$log" | head -n 60 >&2
  return "$status"
}

# core ARCH PACKAGE... runs the tests of these packages. Properties are checked fewer times than by
# `make test`, because an emulator is 10 times slower.
core() {
  local arch=$1 package flags
  shift
  for package; do
    flags=(-test.short -test.timeout 4m)
    ! grep -qs rapid "$package"/*_test.go || flags+=(-rapid.checks=10)
    GOARCH=$arch go test -c -vet=off -o "$work/$package-$arch" "./$package"
    (cd "$package" && FLAKED_TEST_EMULATOR=${emulator[$arch]-} tested ${emulator[$arch]:+"${emulator[$arch]}"} "$work/$package-$arch" "${flags[@]}") ||
      die "$package fails on $arch"
    say "$arch: the tests of $package pass"
  done
}

# shipped ARCH runs the program: nodes that serve a sequence, drain, and start again
# without ZooKeeper. The tests look for IDs and values that were issued twice.
shipped() {
  FLAKED_TEST_GOARCH=$1 tested "$work/e2e" -test.timeout 4m \
    -test.run '^(TestRestoredBackupRepeatsNothing|TestTerminatedWithoutZooKeeper|TestDrainAnswersOpenConnections)$' ||
    die "the program fails on $1"
  say "$1: the program serves on a real ZooKeeper"
}

elsewhere() {
  GOOS=darwin GOARCH=arm64 go build ./...
  say 'darwin/arm64: everything builds'
  export GOOS=windows GOARCH=amd64
  go build ./...
  go vet ./client
  # Files, not the package: its tests start a ZooKeeper, which they do on Unix only.
  (cd cmd/flaked && go list -f '{{join .GoFiles "\n"}}' | xargs go vet)
  say 'windows/amd64: everything builds; client and the command line pass go vet'
}

core_packages=(worker timeguard localcache lineproto coordinator)
# Two jobs side by side, one for each of two cores. `wait` ends the script if a job fails.
{
  core s390x "${core_packages[@]}"
  core arm worker lineproto
} &
first=$!
{
  core arm64 "${core_packages[@]}"
  if [[ $(go env GOHOSTARCH) == amd64 ]]; then
    core 386 "${core_packages[@]}"
  else
    say "386: skipped, because a processor of the kind $(go env GOHOSTARCH) does not run it"
  fi
} &
second=$!
wait "$first"
wait "$second"
(cd internal/check/e2e && go test -c -vet=off -o "$work/e2e" .)
cd internal/check/e2e
shipped s390x
shipped arm64
cd ../../..
elsewhere
