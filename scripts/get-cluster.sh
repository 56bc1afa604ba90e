#!/usr/bin/env bash
#
# get-cluster.sh builds the programs of a Kubernetes cluster, which scripts/cluster.sh runs.
# `get-cluster.sh --help` says more. Messages go to stderr, settings for a shell to stdout.
set -euo pipefail

usage() {
  cat <<'HELP'
get-cluster.sh prepares this machine for `make cluster`. It needs root and Debian on amd64.

  eval "$(scripts/get-cluster.sh)"    install and build what is missing, and use it
  scripts/get-cluster.sh --check      list what is missing, and exit 1 if there is anything

Packages    runc, CNI plugins, nftables and what they need, from Debian
Programs    Kubernetes, Helm, containerd, etcd and CoreDNS, built from the Go module proxy under
            ~/.cache/flaked/cluster: 15 minutes, once. Remove them with: rm -rf ~/.cache/flaked/cluster

Exit code 3: this machine cannot run the cluster.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
arguments "$@"
here=$(cd "$(dirname "$0")/.." && pwd)
own=$here/internal/check/cluster/testdata/programs
chart=$here/internal/check/kubernetes
kubernetes=$(sed -n 's/.*k8s.io\/kubernetes //p' "$chart/go.mod")
containerd=v2.4.2 etcd=v3.7.3
# Programs of other versions lie elsewhere.
versions=$({ cat "$own"/go.mod "$own"/*/*.go "$chart/go.mod"; echo "$containerd $etcd"; } | sha256sum | cut -c1-12)
home=${XDG_CACHE_HOME:-$HOME/.cache}/flaked/cluster
bin=$home/programs-$versions
export PATH=$PATH:/usr/sbin:/sbin

packages=()
need() { have "$1" || packages+=("$2"); }
need runc runc
need nft nftables
need conntrack conntrack
need iptables iptables
need openssl openssl
need ip iproute2
need nsenter util-linux
need mvn maven
[[ -x /usr/lib/cni/ptp ]] || packages+=(containernetworking-plugins)

missing=("${packages[@]}")
[[ -e $bin/done ]] || missing+=("the programs of Kubernetes in $bin")
report_missing "${missing[@]}"

refuse() { say "this machine cannot run the cluster: $*"; exit 3; }
if ((EUID != 0)) || ! have apt-get || [[ $(uname -m) != x86_64 ]]; then refuse 'it needs root, on Debian, on amd64'; fi
[[ -d /sys/fs/cgroup/cpuset && -d /sys/fs/cgroup/memory && -d /sys/fs/cgroup/pids ]] ||
  refuse 'it needs control groups of version 1, with cpuset, memory and pids'
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || refuse 'the kernel has no overlay file system'
memory=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
((memory > 3000000)) || refuse 'it needs 3 GB of free memory'
((${#packages[@]} == 0)) || install_packages ONLY "${packages[@]}" >&2
unshare --net --mount --pid --fork --kill-child --mount-proc sh -c \
  'mount -t tmpfs tmpfs /run && ip link add x type veth && nft add table ip x && nft "add chain ip x y { type nat hook output priority 0; }"' \
  2>/dev/null || refuse 'the kernel lacks namespaces, veth or nftables'

# program MODULE VERSION PACKAGE... builds programs of a module, without other modules of its repository.
program() {
  local module=$1 version=$2
  shift 2
  mkdir "$stage/module"
  (
    cd "$stage/module"
    quietly go mod init build
    quietly go get "$module@$version"
    quietly go build -o "$stage/bin/" "$@"
  )
  rm -r "$stage/module"
}

build() {
  local k=k8s.io/kubernetes/cmd v=k8s.io/component-base/version minor=${kubernetes#v1.}
  export CGO_ENABLED=0 GOWORK=off
  export GOFLAGS='-buildvcs=false -mod=mod'
  mkdir "$stage/bin" "$stage/kubernetes"
  cp "$chart"/go.{mod,sum} "$stage/kubernetes"
  cp -r "$own" "$stage/own"
  say 'building containerd, etcd and CoreDNS ...'
  GOFLAGS+=' -tags=no_btrfs,no_devmapper,no_zfs -ldflags=-s' program github.com/containerd/containerd/v2 "$containerd" \
    github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}
  GOFLAGS+=' -ldflags=-s' program go.etcd.io/etcd/server/v3 "$etcd" go.etcd.io/etcd/server/v3
  mv "$stage/bin/server" "$stage/bin/etcd"
  (cd "$stage/own" && quietly go build -ldflags=-s -o "$stage/bin/" ./dns ./pause)
  say "building Kubernetes $kubernetes and Helm: 15 minutes on two cores ..."
  (cd "$stage/kubernetes" && quietly go build -o "$stage/bin/" \
    -ldflags "-s -X $v.gitVersion=$kubernetes -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}" \
    $k/{kubelet,kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kube-proxy} helm.sh/helm/v3/cmd/helm)
  touch "$stage/bin/done"
  rm -rf "$home"/programs-*
  mv "$stage/bin" "$bin"
}

if [[ ! -e $bin/done ]]; then
  free=$(($(df --output=avail -k "$HOME" | tail -1) / 1000000))
  ((free >= 5)) || refuse "the build needs 5 GB in $HOME, and there are $free"
  mkdir -p "$home"
  stage=$(mktemp -d "$home/build.XXXXXX")
  trap 'rm -rf "$stage"' EXIT
  build
fi
printf 'export FLAKED_TEST_CLUSTER=%q\n' "$bin"
