#!/usr/bin/env bash
#
# get-containers.sh installs a container engine, and makes the base images that the Dockerfile
# and docker-compose.yml ask for. `get-containers.sh --help` says how. A second run costs
# nothing. Messages go to stderr, and settings for a shell to stdout.
set -euo pipefail

usage() {
  cat <<'HELP'
get-containers.sh prepares this machine for `make containers`. It needs root and Debian.

  eval "$(scripts/get-containers.sh)"    install and make what is missing, and use it
  scripts/get-containers.sh --check      list what is missing, and exit 1 if there is anything

Programs    podman, buildah, runc, podman-compose and what they need, from Debian
Images      golang:1.26                Debian with this machine's Go
            zookeeper:3.9              Debian with its ZooKeeper, settings as in the published image
            localhost/flaked-systemd   Debian with systemd as init
            localhost/flaked-clients   Debian with JDK, Python and Node
The images are stand-ins, made here with debootstrap, because no registry can be reached. They
and all containers are kept in ~/.cache/flaked/containers, apart from other containers of
this machine. Remove them with: rm -rf ~/.cache/flaked/containers
Do so also after a change to this script, to zookeeper.sh or to the version of Go: an image
that exists is not made again. Networks are in /etc/containers/networks, as of other containers.

Exit code 3: this machine cannot run containers.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"

home=${XDG_CACHE_HOME:-$HOME/.cache}/flaked/containers
here=$(cd "$(dirname "$0")/.." && pwd)
export CONTAINERS_STORAGE_CONF=$home/storage.conf CONTAINERS_CONF=$home/containers.conf
export CONTAINERS_REGISTRIES_CONF=$home/registries.conf

packages=()
need() { have "$1" || packages+=("${2:-$1}"); }
need podman
need buildah
need runc
need podman-compose
need debootstrap
need catatonit
need iptables
need nc netcat-openbsd
[[ -x /usr/lib/podman/netavark ]] || packages+=(netavark)
[[ -x /usr/lib/podman/aardvark-dns ]] || packages+=(aardvark-dns)

# settings writes the configuration of the engine: storage of its own, the runtime that works
# with version 1 of control groups, and limits that an unprivileged machine allows.
settings() {
  mkdir -p "$home"
  local driver=vfs
  mkdir -p "$home/try/"{lower,upper,work,merged}
  if unshare --mount mount -t overlay -o "lowerdir=$home/try/lower,upperdir=$home/try/upper,workdir=$home/try/work" overlay "$home/try/merged" 2>/dev/null; then
    driver=overlay
  fi
  rm -rf "$home/try"
  cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "$driver"
graphroot = "$home/storage"
runroot = "$home/run"
CONF
  cat >"$CONTAINERS_CONF" <<'CONF'
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=10000:10000"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
  # The last of the three: it shows that all are complete.
  printf 'unqualified-search-registries = ["docker.io"]\n' >"$CONTAINERS_REGISTRIES_CONF"
}

# base makes a root directory of Debian with the packages given, from a copy of a common one.
# debootstrap and apt-get run in a mount namespace of their own. The kernel removes their mounts
# when they end, however they end, so that `rm -rf` of such a directory reaches no mounted /proc.
base() {
  local root=$1
  shift
  if [[ ! -e $home/debian ]]; then
    say 'making a Debian (a minute) ...'
    rm -rf "$home/debian.new"
    quietly unshare --mount debootstrap --variant=minbase --include=ca-certificates bookworm "$home/debian.new" http://deb.debian.org/debian ||
      die 'debootstrap failed'
    # Certificates that this machine trusts beside Debian's, for proxies.
    cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$home/debian.new/etc/ssl/certs/ca-certificates.crt"
    mv -T "$home/debian.new" "$home/debian"
  fi
  cp -a "$home/debian" "$root"
  (($# == 0)) && return
  # No service may start, and no documents are needed.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
  # shellcheck disable=SC2016 # the inner shell expands these
  quietly unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"' "$root" "$@" ||
    die "apt-get could not install $* in $root"
  rm -f "$root/usr/sbin/policy-rc.d" "$root"/var/cache/apt/archives/*.deb
}

# import makes an image of a root directory, which it removes.
import() {
  local root=$1 name=$2
  shift 2
  { tar -C "$root" -cf "$root.tar" . && quietly podman import "$@" "$root.tar" "$name"; } || die "could not make the image $name"
  rm -rf "$root" "$root.tar"
}

cannot() { say 'this machine cannot run containers'; exit 3; }

present() { [[ -e $CONTAINERS_REGISTRIES_CONF ]] && have podman && podman image exists "$1"; }

golang() {
  present docker.io/library/golang:1.26 && return
  say 'making the image golang:1.26 ...'
  local root=$home/root
  rm -rf "$root"
  base "$root"
  mkdir -p "$root/usr/local" "$root/go"
  cp -a "$(go env GOROOT)" "$root/usr/local/go"
  import "$root" docker.io/library/golang:1.26 --change 'ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV GOPATH=/go' --change 'ENV GOTOOLCHAIN=local' --change "ENV GOPROXY=$(go env GOPROXY)" --change 'WORKDIR /go'
}

zookeeper() {
  present docker.io/library/zookeeper:3.9 && return
  say 'making the image zookeeper:3.9 ...'
  local root=$home/root
  rm -rf "$root"
  base "$root" default-jre-headless libzookeeper-java
  mkdir -p "$root/data" "$root/datalog"
  install -m 755 "$here/internal/check/deploy/testdata/zookeeper.sh" "$root/docker-entrypoint.sh"
  import "$root" docker.io/library/zookeeper:3.9 --change 'ENTRYPOINT ["/docker-entrypoint.sh"]' \
    --change 'VOLUME /data' --change 'VOLUME /datalog'
}

systemd() {
  present localhost/flaked-systemd:latest && return
  say 'making the image localhost/flaked-systemd ...'
  local root=$home/root
  rm -rf "$root"
  base "$root" systemd systemd-sysv dbus
  # Its containers are privileged, and must not set this machine's kernel.pid_max and the like.
  ln -s /dev/null "$root/etc/systemd/system/systemd-sysctl.service"
  import "$root" localhost/flaked-systemd:latest --change 'CMD ["/sbin/init"]'
}

clients() {
  present localhost/flaked-clients:latest && return
  say 'making the image localhost/flaked-clients ...'
  local root=$home/root
  rm -rf "$root"
  base "$root" openjdk-17-jdk-headless python3-venv nodejs
  import "$root" localhost/flaked-clients:latest
}

if [[ $check == yes ]]; then
  missing=("${packages[@]}")
  for image in docker.io/library/golang:1.26 docker.io/library/zookeeper:3.9 localhost/flaked-{systemd,clients}:latest; do
    present "$image" || missing+=("$image")
  done
  report_missing "${missing[@]}"
fi

((EUID == 0)) || die 'run this as root: it mounts file systems and starts containers with systemd'
quietly unshare --mount true || cannot
have go || die 'no Go in PATH'
# Children inherit the lock. If this script is killed, the next one waits for them.
mkdir -p "$home"
exec 9>"$home/lock"
flock --nonblock 9 || { say 'waiting for another get-containers.sh ...'; flock 9; }
((${#packages[@]} == 0)) || install_packages FLAKED_TEST_CONTAINERS "${packages[@]}"
[[ -e $CONTAINERS_REGISTRIES_CONF ]] || settings
golang
zookeeper
systemd
clients
rm -rf "$home/debian" "$home/debian.new" "$home/root" "$home/root.tar"
quietly podman run --rm --network none localhost/flaked-systemd:latest true || cannot
printf 'export CONTAINERS_STORAGE_CONF=%q CONTAINERS_CONF=%q CONTAINERS_REGISTRIES_CONF=%q\n' \
  "$CONTAINERS_STORAGE_CONF" "$CONTAINERS_CONF" "$CONTAINERS_REGISTRIES_CONF"
