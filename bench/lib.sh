# shellcheck shell=bash
#
# lib.sh starts and measures servers, for the scripts of this directory. Servers run on one core, and the load on
# another.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C # programs write, and awk reads, numbers with a point

readonly ROUNDS=${ROUNDS:-5} SCALE=${SCALE:-100} # SCALE: percent of the requests
readonly SERVER_CORE=0 LOAD_CORE=1

die() { printf '%s: %s\n' "$0" "$*" >&2; exit 1; }

dir=$(mktemp -d)
pids=()
cleanup() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  scripts/zk-dev.sh stop --wipe --dir "$dir/zk" >/dev/null 2>&1 || true
  rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# launch NAME PORT COMMAND... starts a server on the servers' core and waits until it listens.
declare -A port pid
launch() {
  local name=$1
  port[$name]=$2
  shift 2
  taskset -c $SERVER_CORE "$@" >"$dir/$name.log" 2>&1 &
  pid[$name]=$!
  pids+=($!)
  for _ in {1..300}; do
    (: </dev/tcp/127.0.0.1/"${port[$name]}") 2>/dev/null && return
    kill -0 "${pid[$name]}" 2>/dev/null || break
    sleep 0.1
  done
  cat "$dir/$name.log" >&2
  die "$name does not listen on port ${port[$name]}"
}

# launch_flaked NAME PORT PROGRAM FLAGS... starts a node with a cluster, and waits until it has a worker.
launch_flaked() {
  local name=$1 listen=$2 program=$3
  shift 3
  launch "$name" "$listen" "$program" serve --zk "$FLAKED_ZK" --bootstrap --cluster "$name" --confirm-time 6s \
    --admin off --log-level warn --listen "127.0.0.1:$listen" --state-dir "$dir/$name.state" "$@"
  for _ in {1..300}; do
    ! "$program" status --zk "$FLAKED_ZK" --cluster "$name" 2>/dev/null | grep -q '^healthy' || return 0
    sleep 0.1
  done
  cat "$dir/$name.log" >&2
  die "$name is not ready"
}

# create NAME CLUSTER creates a named sequence, whose values have 13 digits from the start. A node that has just got its
# worker may need a moment before it serves sequences.
create() {
  for _ in {1..100}; do
    ! bin/flaked seq create --zk "$FLAKED_ZK" --cluster "$2" --start 1000000000000 --ceiling 100000000 "$1" \
      >"$dir/create.log" 2>&1 || return 0
    sleep 0.1
  done
  die "$(cat "$dir/create.log")"
}

# cpu PID prints the processor time of a process, in hundredths of a second.
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# resp WORDS... prints a request as a RESP array.
resp() {
  local word
  printf '*%d\r\n' $#
  for word; do printf '$%d\r\n%s\r\n' ${#word} "$word"; done
}

# load NAME CONNECTIONS PIPELINE REQUESTS REQUEST... makes REQUESTS requests with bin/load, each REQUEST in its turn,
# PIPELINE at a time. It prints requests a second, p99 in ms, and the server's processor time in us a request.
load() {
  local name=$1 conns=$2 pipeline=$3 requests=$(($4 * SCALE / 100)) rate=0 before out
  [[ $3 != rate=* ]] || { pipeline=1 rate=${3#rate=}; }
  shift 4
  for ((i = 0; i < pipeline; i++)); do printf '%s' "${@:1 + i % $#:1}"; done >"$dir/request"
  before=$(cpu "${pid[$name]}")
  out=$(taskset -c $LOAD_CORE bin/load "${port[$name]}" "$conns" $((requests / pipeline)) "$rate" <"$dir/request" 2>&1) ||
    die "load of $name: $out"
  awk -v cpu=$(($(cpu "${pid[$name]}") - before)) -v n="$requests" -v p="$pipeline" \
    '{ print $1 * p, $3, cpu * 10000 / n }' <<<"$out"
}
