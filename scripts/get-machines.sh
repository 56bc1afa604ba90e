#!/usr/bin/env bash
#
# get-machines.sh installs what `make machines` needs: QEMU, tools for disks, chrony, and a kernel.
# `get-machines.sh --help` says more. Messages go to stderr, settings for a shell to stdout.
set -euo pipefail

usage() {
  cat <<'HELP'
get-machines.sh prepares this machine for `make machines`. It needs root and Debian on amd64.

  eval "$(scripts/get-machines.sh)"    install what is missing, and use it
  scripts/get-machines.sh --check      list what is missing, and exit 1 if there is anything

Programs    QEMU, busybox, chrony, cpio, mkfs.ext4, mkfs.xfs and what they need, from Debian
Kernel      Debian's for clouds, unpacked under ~/.cache/flaked/machines. Nothing boots from it
            but QEMU. Remove it with: rm -rf ~/.cache/flaked/machines

Exit code 3: this machine cannot run virtual machines.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"

home=${XDG_CACHE_HOME:-$HOME/.cache}/flaked/machines
export PATH=$PATH:/usr/sbin:/sbin

packages=()
need() { have "$1" || packages+=("${2:-$1}"); }
need qemu-system-x86_64 qemu-system-x86
need qemu-img qemu-utils
need busybox busybox-static
need cpio
need mkfs.ext4 e2fsprogs
need mkfs.xfs xfsprogs
need chronyd chrony

kernel() { compgen -G "$home/root/boot/vmlinuz-*" >/dev/null; }

missing=("${packages[@]}")
kernel || missing+=('a kernel in '"$home")
report_missing "${missing[@]}"

if ((EUID != 0)) || ! have apt-get || [[ $(uname -m) != x86_64 ]]; then
  say 'virtual machines are only prepared by root, on Debian, on amd64'
  exit 3
fi
free=$(df --output=avail -k "${TMPDIR:-/tmp}" | tail -1)
if ((free < 3000000)); then
  say "${TMPDIR:-/tmp} has less than 3 GB of space"
  exit 3
fi
# Debian would start the service of chrony, and that would set this machine's clock.
((${#packages[@]} == 0)) || RUNLEVEL=1 install_packages ONLY "${packages[@]}" >&2
if ! kernel; then
  say "getting Debian's kernel for clouds ..."
  refresh_packages
  package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
  mkdir -p "$home"
  (cd "$home" && quietly apt-get download "$package" && rm -rf root && quietly dpkg-deb -x "$package"_*.deb root && rm "$package"_*.deb)
fi
printf 'export FLAKED_TEST_MACHINES=%q\n' "$home/root"
