#!/usr/bin/env bash
#
# fair.sh measures how long clients that ask for one ID wait beside bad and greedy ones. `make bench-fair` runs it.
#
# Environment: ROUNDS (default 5), SCALE: percent of the time (100).
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
readonly PORT=7740
# Each row: what the greedy clients do, and the command that does it.
readonly ROWS=(
  'do nothing|sleep infinity'
  "8,000 connections, read none|bin/greedy -port $PORT -conns 8000"
  "256 connections, read and ask again|bin/load $PORT 256 1000000"
  "1,000 connections, pipeline, read none|bin/greedy -port $PORT -conns 1000 -pipeline 100"
  "400 resets a second|bin/greedy -port $PORT -conns 20 -resets 400"
)

# measure NAME COMMAND... appends p99 and the longest wait, in ms, of 20 connections that make 500 requests a second in
# all while COMMAND runs.
measure() {
  local name=$1 greedy
  shift
  printf 'GET 10000\n' | taskset -c $LOAD_CORE "$@" >"$dir/greedy.log" 2>&1 &
  greedy=$!
  pids+=("$greedy")
  taskset -c $LOAD_CORE bin/flaked bench --addr "127.0.0.1:$PORT" --conns 20 --rate 500 --warmup 2s \
    --duration "$((SCALE * 40))ms" -o json >"$dir/small" 2>&1 || die "$name: $(cat "$dir/small")"
  kill "$greedy" || die "$name: the greedy clients ended: $(cat "$dir/greedy.log")"
  wait "$greedy" || true
  awk -F '[:,]' -v name="$name" '/"p99"/ { p99 = $2 } /"max"/ { print name "|" p99 / 1000 "|" $2 / 1000 }' \
    "$dir/small" >>"$dir/results"
  sleep 2 # until the node has closed the connections
}

zk=$(scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$dir/zk")
eval "$zk"
launch_flaked flaked $PORT bin/flaked
for ((round = 0; round < ROUNDS; round++)); do
  for row in "${ROWS[@]}"; do
    # shellcheck disable=SC2086 # the words of the command
    measure "${row%%|*}" ${row#*|}
  done
done
printf '%-40s %12s %18s\n' "beside clients that, $ROUNDS rounds" 'p99, ms' 'longest wait, ms'
for row in "${ROWS[@]}"; do
  name=${row%%|*}
  p99=$(grep -F "$name|" "$dir/results" | cut -d '|' -f 2 | sort -g | sed -n "$((ROUNDS / 2 + 1))p")
  longest=$(grep -F "$name|" "$dir/results" | cut -d '|' -f 3 | sort -g | tail -n 1)
  printf '%-40s %12.1f %18.1f\n' "$name" "$p99" "$longest"
done
