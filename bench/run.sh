#!/usr/bin/env bash
#
# run.sh measures flaked beside Redis and beside the floor, a server that does nothing
# (bench/floor/epoll.c). redis-benchmark loads them in turns. Servers run on one core,
# redis-benchmark on another. `make bench` builds the programs and runs it.
#
#     bench/run.sh [BEFORE]      BEFORE is another flaked, to compare with
#
# Environment: ROUNDS (default 5), CONNS (50), SCALE: percent of the requests (100).
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # redis-benchmark writes, and awk reads, numbers with a point

readonly BEFORE=${1:-} ROUNDS=${ROUNDS:-5} CONNS=${CONNS:-50} SCALE=${SCALE:-100}
readonly SERVER_CORE=0 CLIENT_CORE=1
# Each row: name, requests that a connection pipelines, thousands of requests, command for
# flaked. Redis gets INCR.
readonly ROWS=('GET|1|200|GET id' 'GET|16|1500|GET id' 'NEXT|1|200|NEXT bench' 'NEXT|16|1500|NEXT bench')

die() { printf 'bench/run.sh: %s\n' "$*" >&2; exit 1; }

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

# find_redis sets redis and lib. If redis-server is not installed, it unpacks Debian's package
# in the cache. It installs nothing and starts no service.
find_redis() {
  local cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/flaked/peers package
  lib=''
  redis=$(command -v redis-server) && return
  command -v apt-get >/dev/null || die 'redis-server not found. Install it'
  redis=$cache/root/usr/bin/redis-server
  if [[ ! -x $redis ]]; then
    mkdir -p "$cache"
    (
      cd "$cache"
      local packages=(redis-server redis-tools libatomic1 libjemalloc2 liblzf1 libssl3 libsystemd0)
      apt-get download "${packages[@]}" >apt.log 2>&1 ||
        { apt-get update && apt-get download "${packages[@]}"; } >>apt.log 2>&1 ||
        { tail -n 5 apt.log >&2; exit 1; }
      for package in *.deb; do dpkg-deb -x "$package" root; done
      rm -f -- *.deb
    ) || die 'fetching redis-server failed. Install it'
  fi
  lib=$(echo "$cache"/root/usr/lib/*-linux-gnu)
}

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

# launch_flaked NAME PORT PROGRAM starts a node with a cluster and a sequence of its own.
launch_flaked() {
  launch "$1" "$2" "$3" serve --zk "$FLAKED_ZK" --bootstrap --cluster "$1" --confirm-time 6s --admin off --log-level warn \
    --listen "127.0.0.1:$2" --state-dir "$dir/$1.state"
  local created=''
  for _ in {1..300}; do
    [[ -n $created ]] || ! "$3" seq create --zk "$FLAKED_ZK" --cluster "$1" bench >"$dir/create.log" 2>&1 || created=yes
    [[ -z $created ]] || ! "$3" seq next --addr "127.0.0.1:$2" bench >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  cat "$dir/$1.log" "$dir/create.log" >&2
  die "$1 is not ready"
}

# cpu PID prints the processor time of a process, in hundredths of a second.
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# measure NAME COMMAND PIPELINE REQUESTS prints requests a second, p99 in ms, and the server's
# processor time in microseconds a request.
measure() {
  local name=$1 command=$2 pipeline=$3 requests=$4 before out
  before=$(cpu "${pid[$name]}")
  # shellcheck disable=SC2086 # the words of the command
  out=$(taskset -c $CLIENT_CORE redis-benchmark -h 127.0.0.1 -p "${port[$name]}" -c "$CONNS" -P "$pipeline" -n "$requests" --csv $command 2>"$dir/benchmark.log") ||
    { cat "$dir/benchmark.log" >&2; die "redis-benchmark failed for $name"; }
  awk -F '","' -v cpu=$(($(cpu "${pid[$name]}") - before)) -v n="$requests" '
    END { if (NF < 8 || $2 <= 0) exit 1; print $2, $7, cpu * 10000 / n }' <<<"$out" || die "redis-benchmark printed for $name: $out"
}

command -v redis-benchmark >/dev/null || die 'redis-benchmark not found: apt-get install redis-tools'
(($(nproc) > 1)) || die 'it needs two cores'
find_redis
zk=$(scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$dir/zk")
eval "$zk"
launch floor 7701 bin/floor 7701
launch redis 7702 env ${lib:+"LD_LIBRARY_PATH=$lib"} "$redis" --port 7702 --bind 127.0.0.1 --save '' --appendonly no --dir "$dir"
launch_flaked flaked 7703 bin/flaked
names=(floor redis flaked)
if [[ -n $BEFORE ]]; then
  launch_flaked before 7704 "$BEFORE"
  names+=(before)
fi

for ((round = 1; round <= ROUNDS; round++)); do
  printf 'round %d of %d\n' "$round" "$ROUNDS" >&2
  for row in "${ROWS[@]}"; do
    IFS='|' read -r request pipeline thousands command <<<"$row"
    for name in "${names[@]}"; do
      asked=$command
      [[ $name != redis ]] || asked='INCR bench'
      figures=$(measure "$name" "$asked" "$pipeline" $((thousands * 10 * SCALE)))
      echo "$request P$pipeline|$name|${figures// /|}" >>"$dir/results"
    done
  done
done

# The ratios are medians of the ratios of each round: what disturbs a whole round is not in them.
awk -F '|' -v rounds="$ROUNDS" '
  function median(list,   n, a, i, j, t) {
    n = split(list, a, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
  }
  function ratio(row, who, other,   n, a, b, i, list) {
    if (!((row, other) in rate) || who == other) return "-"
    n = split(rate[row, who], a, " "); split(rate[row, other], b, " ")
    for (i = 1; i <= n; i++) list = list " " a[i] / b[i]
    return sprintf("%.2f", median(list))
  }
  !($1 in seen) { seen[$1]; rows[++nrows] = $1 }
  !($2 in known) { known[$2]; names[++nnames] = $2 }
  { rate[$1, $2] = rate[$1, $2] " " $3; p99[$1, $2] = p99[$1, $2] " " $4; cpu[$1, $2] = cpu[$1, $2] " " $5 }
  END {
    printf "medians of %d rounds, redis-benchmark\n\n%-9s %-7s %12s %9s %13s %8s %8s %9s\n", rounds, "request", "server", "requests/s", "p99, ms", "cpu us/request", "x floor", "x redis", "x before"
    for (r = 1; r <= nrows; r++) for (i = 1; i <= nnames; i++) {
      row = rows[r]; who = names[i]
      printf "%-9s %-7s %12.0f %9.3f %14.2f %8s %8s %9s\n", row, who, median(rate[row, who]), median(p99[row, who]), median(cpu[row, who]), ratio(row, who, "floor"), ratio(row, who, "redis"), ratio(row, who, "before")
    }
  }' "$dir/results"
