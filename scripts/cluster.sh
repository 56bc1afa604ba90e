#!/usr/bin/env bash
#
# cluster.sh runs a command in a Kubernetes cluster that it starts on this machine.
# `cluster.sh --help` says more.
set -euo pipefail

usage() {
  cat <<'HELP'
cluster.sh starts a Kubernetes cluster, runs a command in it, and ends the cluster.

  eval "$(scripts/get-cluster.sh)" && scripts/cluster.sh COMMAND [ARGUMENT...]
  scripts/cluster.sh --node N     for COMMAND: start node N again, whose processes have ended

The cluster has etcd, the control plane, DNS and three nodes. Each node is a network namespace with its
own containerd, kubelet and kube-proxy. The command runs beside the control plane: it reaches pods, Services
and their names. Its PATH has kubectl, helm and ctr. /run/cluster has the files of the cluster: log/NAME.log,
pid/NAME, and nN/containerd.sock of node N.

All of it lives in namespaces of its own, for process IDs, mounts and networks. When the command or this script
ends, even by SIGKILL, the kernel ends all processes and removes all mounts. The disks of pods are in
~/.cache/flaked/cluster/disks, and are removed at the end. Nothing reaches the machine's network.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
case ${1:---help} in -h | --help) usage; exit 0 ;; esac
bin=${FLAKED_TEST_CLUSTER:?call get-cluster.sh first, and evaluate what it prints}
home=$(dirname "$bin")
run=/run/cluster nodes='n1 n2 n3'
# The networks of nodes, pods and Services. Node N has the address $net.1N, and its pods are in $pods.N.0/24.
net=10.200.0 pods=10.201 services=10.96.0

# The first call makes the namespaces, and cleans up what they do not hold: the disks, and control groups.
if [[ $1 != --inside && $1 != --node ]]; then
  exec 9>"$home/lock"
  flock --nonblock 9 || die 'another cluster runs. Wait until it has ended'
  clean() {
    rm -rf "$home/disks"
    find /sys/fs/cgroup/*/flaked-n? -depth -type d -exec rmdir {} + 2>/dev/null || true
  }
  clean
  mkdir -p "$home/disks"
  # unshare ends with this script, and all of the cluster with unshare.
  setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --inside "$@" 9>&- &
  trap 'kill -KILL $! 2>/dev/null || true; wait || true; sleep 1; clean' EXIT
  wait $!
  exit
fi

# at NODE COMMAND...: in the network namespace of a node. `ip netns exec` would hide /sys/fs/cgroup.
at() { local ns=$1; shift; nsenter --net="/run/netns/$ns" -- "$@"; }

# start NAME COMMAND...: a process in the background.
start() {
  local name=$1
  shift
  setsid "$@" >>"$run/log/$name.log" 2>&1 </dev/null &
  echo $! >"$run/pid/$name"
}

# wait_for SECONDS NAME COMMAND...: until the command succeeds, or the log of NAME is shown.
wait_for() {
  local until=$((SECONDS + $1)) name=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || { tail -n 20 "$run/log/$name.log" >&2; die "$name did not start in time"; }
    sleep 0.5
  done
}

# certificate NAME SUBJECT [ALTERNATIVES]
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" \
    -extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}") 2>/dev/null
}

# access NAME SUBJECT [ALTERNATIVES]: a certificate, and a kubeconfig with it.
access() {
  certificate "$@"
  cat >"$1.conf" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$net.1:6443", certificate-authority: $run/ca.crt}}]
users: [{name: u, user: {client-certificate: $run/$1.crt, client-key: $run/$1.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
YAML
}

certificates() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out sa.key
  certificate apiserver /CN=kube-apiserver "IP:$net.1,IP:$services.1"
  access admin /O=system:masters/CN=admin
  access manager /CN=system:kube-controller-manager
  access scheduler /CN=system:kube-scheduler
  access proxy /CN=system:kube-proxy
  # ZooKeeper's, and of those who connect to it.
  certificate zookeeper /CN=zookeeper 'DNS:*.zk.default'
  local n
  for n in $nodes; do access "$n" "/O=system:nodes/CN=system:node:$n" "IP:$net.1${n#n}"; done
}

# A kubelet sets these for the whole machine. Here it sets copies.
tunables() {
  local t
  for t in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    mkdir -p "$run/sys/${t%/*}"
    cat "/proc/sys/$t" >"$run/sys/$t"
    mount --bind "$run/sys/$t" "/proc/sys/$t"
  done
}

# network connects all nodes by a bridge, where the control plane is, too.
network() {
  local n m
  ip link set lo up
  ip link add br0 type bridge
  ip addr add "$net.1/24" dev br0
  ip link set br0 up
  # Connections to Services need a route before kube-proxy leads them to pods.
  ip route add "$services.0/16" dev br0
  sysctl -qw net.ipv4.ip_forward=1
  for n in $nodes; do
    ip netns add "$n"
    ip link add "$n" type veth peer name eth0 netns "$n"
    ip link set "$n" master br0 up
    ip route add "$pods.${n#n}.0/24" via "$net.1${n#n}"
    at "$n" ip link set lo up
    at "$n" ip addr add "$net.1${n#n}/24" dev eth0
    at "$n" ip link set eth0 up
    at "$n" ip route add default via "$net.1"
    at "$n" sysctl -qw net.ipv4.ip_forward=1
    for m in $nodes; do [[ $m == "$n" ]] || at "$n" ip route add "$pods.${m#n}.0/24" via "$net.1${m#n}"; done
  done
  printf 'nameserver %s.1\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n' "$net" >"$run/resolv.conf"
  mount --bind "$run/resolv.conf" /etc/resolv.conf
}

control_plane() {
  start etcd etcd --data-dir "$run/etcd" --unsafe-no-fsync
  start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 \
    --bind-address "$net.1" --advertise-address "$net.1" --service-cluster-ip-range "$services.0/16" \
    --client-ca-file ca.crt --tls-cert-file apiserver.crt --tls-private-key-file apiserver.key \
    --kubelet-client-certificate admin.crt --kubelet-client-key admin.key --kubelet-certificate-authority ca.crt \
    --service-account-key-file sa.key --service-account-signing-key-file sa.key \
    --service-account-issuer https://kubernetes.default.svc --kubelet-preferred-address-types InternalIP \
    --authorization-mode Node,RBAC --allow-privileged --enable-admission-plugins NodeRestriction
  wait_for 120 apiserver kubectl get --raw /readyz
  start manager kube-controller-manager --kubeconfig manager.conf --service-account-private-key-file sa.key \
    --root-ca-file ca.crt --use-service-account-credentials --leader-elect=false --bind-address 127.0.0.1
  start scheduler kube-scheduler --kubeconfig scheduler.conf --leader-elect=false --bind-address 127.0.0.1
  printf '.:53 {\n  bind %s.1\n  errors\n  kubernetes cluster.local {\n    kubeconfig %s/admin.conf c\n    ttl 5\n  }\n}\n' "$net" "$run" >Corefile
  start dns dns -conf Corefile
  # DNS runs beside the control plane, so its Service has no selector. `local` is the class of disks.
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: $services.10, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
endpoints: [{addresses: [$net.1]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
YAML
}

# disks makes twelve local disks on each node: directories that belong to root, as a new file system does.
disks() {
  local n d
  for n in $nodes; do
    for d in {1..12}; do
      mkdir -p "$home/disks/$n-$d"
      cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $n-$d}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: local
  local: {path: $home/disks/$n-$d}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$n]}]}]}}
YAML
    done
  done | kubectl apply -f - >/dev/null
}

# The CNI plugin ptp routes all traffic of pods. With a bridge, pods of one node would not reach each other through a
# Service, unless the kernel has br_netfilter. This machine may lack CAP_SYS_RESOURCE, so no oom_score_adj is lowered.
settings() {
  local n=$1 dir=$run/$1 c f
  mkdir -p "$dir/cni"
  : >"$dir/resolv.conf"
  cat >"$dir/cni/10-ptp.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
  "dataDir": "$dir/ipam", "ranges": [[{"subnet": "$pods.${n#n}.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
  cat >"$dir/containerd.toml" <<TOML
version = 3
root = '$dir/containerd'
state = '$dir/state'
disabled_plugins = ['io.containerd.internal.v1.opt']
[grpc]
  address = '$dir/containerd.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'localhost/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/usr/lib/cni']
    conf_dir = '$dir/cni'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    runtime_path = '$bin/containerd-shim-runc-v2'
    options = {BinaryName = '/usr/sbin/runc', SystemdCgroup = false}
TOML
  cat >"$dir/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $net.1${n#n}
tlsCertFile: $run/$n.crt
tlsPrivateKeyFile: $run/$n.key
authentication: {x509: {clientCAFile: $run/ca.crt}, anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /flaked-$n
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
enforceNodeAllocatable: [none]
clusterDNS: [$services.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$dir/containerd.sock
podLogsDir: $dir/pods
resolvConf: $dir/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
YAML
  # The kubelet's root of control groups must exist. A new cpuset has no processors.
  for c in /sys/fs/cgroup/*/; do mkdir -p "$c/flaked-$n"; done
  for f in cpus mems; do cat /sys/fs/cgroup/cpuset/cpuset.$f >"/sys/fs/cgroup/cpuset/flaked-$n/cpuset.$f"; done
}

# proxy NAMESPACE NODE: kube-proxy with the tunables of connection tracking that a namespace does not let it write.
proxy() {
  start "proxy-$1" "${@:3}" kube-proxy --kubeconfig proxy.conf --hostname-override "$2" --proxy-mode nftables \
    --cluster-cidr "$pods.0.0/16" --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
}

node() {
  local n=$1 dir=$run/$1 in=(nsenter --net="/run/netns/$1" --)
  settings "$n"
  start "containerd-$n" "${in[@]}" containerd --config "$dir/containerd.toml"
  wait_for 60 "containerd-$n" ctr -a "$dir/containerd.sock" version
  start "kubelet-$n" "${in[@]}" kubelet --config "$dir/kubelet.yaml" --kubeconfig "$n.conf" --hostname-override "$n" \
    --node-ip "$net.1${n#n}" --root-dir "$dir/kubelet" --node-labels "topology.kubernetes.io/zone=z${n#n}" --v 2
  proxy "$n" "$n" "${in[@]}"
}

export PATH=$bin:$PATH:/usr/sbin:/sbin KUBECONFIG=$run/admin.conf
export HELM_CACHE_HOME=$run/helm/cache HELM_CONFIG_HOME=$run/helm/config HELM_DATA_HOME=$run/helm/data
if [[ $1 == --node ]]; then
  cd "$run"
  ip link set "$2" up
  node "$2"
  wait_for 180 "kubelet-$2" kubectl wait --for=condition=Ready "node/$2" --timeout=1s
  exit
fi
shift
mount -t tmpfs tmpfs /run
mkdir -p "$run"/{log,pid}
cd "$run"
tunables
network
certificates
control_plane
disks
for n in $nodes; do node "$n"; done
wait_for 180 kubelet-n3 kubectl wait --for=condition=Ready node/n1 node/n2 node/n3 --timeout=1s
proxy command n3
say "the cluster is ready after $SECONDS s"
cd "$OLDPWD"
"$@"
