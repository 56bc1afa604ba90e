#!/usr/bin/env bash
#
# growth.sh measures what one more connection, named sequence and node costs. `make bench-growth` runs it.
#
# Environment: ROUNDS (default 5), SCALE: percent of the requests (100), NODES (16 64 256), ONLY: conns, sequences or nodes.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
readonly NODES=${NODES-16 64 256} ONLY=${ONLY:-} FOR=20

# received prints how many requests ZooKeeper has had, pings included.
received() {
  exec 3<>"/dev/tcp/${FLAKED_ZK/://}"
  printf srvr >&3
  sed -n 's/^Received: //p' <&3
  exec 3>&-
}

# memory PIDS... prints the resident memory of a process, in KiB, on average.
memory() { for p; do awk '/^VmRSS:/ { print $2 }' "/proc/$p/status"; done | awk '{ s += $1 } END { printf "%.0f", s / NR }'; }

# ran PIDS... prints how long the processes have run, in ms. Unlike /proc/PID/stat it counts less than 10 ms.
ran() { for p; do cat "/proc/$p/task/"*/schedstat; done | awk '{ s += $1 } END { printf "%.0f", s / 1e6 }'; }

# row NAME CONNECTIONS PIPELINE REQUESTS REQUEST... appends a round of load to the results.
row() {
  local name=$1 before figures
  shift
  before=$(received)
  figures=$(load flaked "$@")
  echo "$name|${figures// /|}|$(memory "${pid[flaked]}")|$(($(received) - before - 1))" >>"$dir/results"
}

# median NAME HEADING... prints the medians of the results, and removes them.
medians() {
  printf '\n%-36s %12s %9s %15s %11s %11s\n' "$1, medians of $ROUNDS" requests/s 'p99, ms' 'cpu us/request' \
    'memory, KiB' 'zk requests'
  for name in $(cut -d '|' -f 1 "$dir/results" | sort -Vu | tr ' ' _); do
    printf '%-36s' "${name//_/ }"
    for k in 2 3 4 5 6; do
      grep "^${name//_/ }|" "$dir/results" | cut -d '|' -f $k | sort -g | sed -n "$((ROUNDS / 2 + 1))p"
    done |
      awk '{ v[NR] = $1 } END { printf " %12.0f %9.3f %15.2f %11d %11d\n", v[1], v[2], v[3], v[4], v[5] }'
  done
  rm "$dir/results"
}

zk=$(scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$dir/zk")
eval "$zk"
zkpid=$(scripts/zk-dev.sh status --dir "$dir/zk" | awk 'NR == 2 { print $3 }')
if [[ -z $ONLY || $ONLY != nodes ]]; then
  launch_flaked flaked 7710 bin/flaked
  create 'bench-*' flaked
fi

if [[ -z $ONLY || $ONLY == conns ]]; then
  for ((round = 0; round < ROUNDS; round++)); do
    for conns in 10 100 1000 10000; do row "GET on $conns connections" "$conns" 1 100000 "$(resp GET id)"$'\n'; done
  done
  medians connections
  printf '\n%-16s %12s %12s\n' 'idle connections' 'memory, KiB' 'cpu ms/s'
  for conns in 10 100 1000 10000; do
    resp GET id | bin/load "${port[flaked]}" "$conns" "$conns" 0 15 >"$dir/idle" &
    until [[ -s $dir/idle ]]; do sleep 0.2; done
    sleep 2
    cpu=$(ran "${pid[flaked]}")
    sleep 10
    printf '%-16d %12d %12.2f\n' "$conns" "$(memory "${pid[flaked]}")" $(($(ran "${pid[flaked]}") - cpu))e-1
    wait $!
  done
fi

if [[ -z $ONLY || $ONLY == sequences ]]; then
  names() { for ((k = 1; k <= $1; k++)); do resp NEXT "bench-$k"; printf '\0'; done; }
  mapfile -d '' all < <(names 1000)
  exec 4<>"/dev/tcp/127.0.0.1/${port[flaked]}"
  for ((k = 1; k <= 1000; k++)); do
    until printf 'NEXT bench-%d\n' $k >&4 && read -r -u 4 value && [[ $value != -* ]]; do sleep 0.1; done
  done
  load flaked 1 1000 2000000 "${all[@]}" >/dev/null # lets their blocks grow
  for ((round = 0; round < ROUNDS; round++)); do
    for conns in 1 50; do
      for count in 1 10 100 1000; do row "$count sequences on $conns connections" "$conns" 1000 2000000 "${all[@]:0:count}"; done
    done
  done
  medians sequences
fi

if [[ -z $ONLY || $ONLY == nodes ]]; then
  printf '\n%-10s %14s %14s %14s %16s %16s\n' 'idle nodes' 'cpu ms/s each' 'memory, KiB' 'zk requests/s' each \
    'zk cpu ms/s'
  mine=()
  for count in $NODES; do
    while ((${#mine[@]} < count)); do
      bin/flaked serve --zk "$FLAKED_ZK" --bootstrap --cluster nodes --admin off --log-level error \
        --listen "unix:$dir/${#mine[@]}.sock" --state-dir "$dir/nodes.${#mine[@]}" >"$dir/nodes.log" 2>&1 &
      mine+=($!)
      pids+=($!)
    done
    for _ in {1..120}; do
      ! bin/flaked status --zk "$FLAKED_ZK" --cluster nodes 2>&1 | grep -q ": $count live" || break
      sleep 0.5
    done
    sleep 10
    requests=$(received) cpu=$(ran "${mine[@]}") zkcpu=$(ran "$zkpid")
    sleep $FOR
    requests=$(($(received) - requests)) cpu=$(($(ran "${mine[@]}") - cpu)) zkcpu=$(($(ran "$zkpid") - zkcpu))
    awk -v n="$count" -v r=$requests -v c=$cpu -v z=$zkcpu -v m="$(memory "${mine[@]}")" -v t=$FOR \
      'BEGIN { printf "%-10d %14.2f %14d %14.1f %16.2f %16.1f\n", n, c / t / n, m, r / t, r / t / n, z / t }'
  done
fi
