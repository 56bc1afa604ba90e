#!/usr/bin/env bash
#
# run.sh measures flaked beside Redis and beside floors, servers that do nothing (bench/floor). They get their load in
# turns. `make bench` builds the programs and runs it.
#
#     bench/run.sh [BEFORE]      BEFORE is another flaked, to compare with
#
# Environment: ROUNDS (default 5), SCALE: percent of the requests (100), CONNS (50), ONLY: a pattern of rows.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

readonly BEFORE=${1:-} CONNS=${CONNS:-50} ONLY=${ONLY:-}
# Each row: name, suffix of the servers' names, servers, requests in a pipeline, thousands of requests, request for
# flaked. Redis gets INCR. The load is redis-benchmark for TLS, and else bin/load, which needs less of a processor.
readonly ROWS=(
  'GET P1||floor redis flaked|1|300|GET id'
  'GET P16||floor redis flaked|16|3000|GET id'
  'NEXT P1||floor redis flaked|1|300|NEXT bench'
  'NEXT P16||floor redis flaked|16|3000|NEXT bench'
  'CPU 50,000/s||floor redis flaked|rate=50000|100|GET id'
  'TLS P1|-tls|redis flaked|1|100|GET id'
  'TLS P16|-tls|redis flaked|16|1000|GET id'
  'GET 1000|-wide|floor flaked|1|80|GET 1000'
  'HTTP|-http|floor flaked|1|50|GET /v1/ids HTTP/1.1'
)

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

# launch_all NAME PORT PROGRAM starts a node for TCP and HTTP, one for TLS, and one with a wide layout.
launch_all() {
  launch_flaked "$1" "$2" "$3" --admin "127.0.0.1:$(($2 + 1))"
  pid[$1-http]=${pid[$1]} port[$1-http]=$(($2 + 1))
  create bench "$1"
  launch_flaked "$1-tls" $(($2 + 2)) "$3" --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem"
  launch_flaked "$1-wide" $(($2 + 3)) "$3" --layout leaf,worker=2,sequence=20
}

# measure NAME PIPELINE REQUESTS REQUEST prints the figures of load.
measure() {
  local name=$1 pipeline=$2 requests=$3 request=$4 before out
  if [[ $name != *-tls ]]; then
    # shellcheck disable=SC2086 # the words of the request
    case $name in
      *-http) request+=$'\r\nHost: 127.0.0.1\r\n\r\n' ;;
      *-wide) request+=$'\n' ;;
      *) request=$(resp $request)$'\n' ;;
    esac
    load "$name" "$CONNS" "$pipeline" "$requests" "$request"
    return
  fi
  before=$(cpu "${pid[$name]}")
  # shellcheck disable=SC2086 # the words of the request
  out=$(taskset -c $LOAD_CORE redis-benchmark --tls --insecure -p "${port[$name]}" -c "$CONNS" -P "$pipeline" -n $((requests * SCALE / 100)) --csv $request 2>"$dir/benchmark.log") ||
    die "redis-benchmark for $name: $(cat "$dir/benchmark.log")"
  awk -F '","' -v cpu=$(($(cpu "${pid[$name]}") - before)) -v n=$((requests * SCALE / 100)) '
    END { if (NF < 8 || $2 <= 0) exit 1; print $2, $7, cpu * 10000 / n }' <<<"$out" || die "redis-benchmark printed for $name: $out"
}

command -v redis-benchmark >/dev/null || die 'redis-benchmark not found: apt-get install redis-tools'
(($(nproc) > 1)) || die 'it needs two cores'
find_redis
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
zk=$(scripts/zk-dev.sh start --nodes 1 --port 0 --dir "$dir/zk")
eval "$zk"
launch floor 7701 bin/floor 7701
launch floor-wide 7702 bin/floor 7702 1000
launch redis 7703 env ${lib:+"LD_LIBRARY_PATH=$lib"} "$redis" --port 7703 --tls-port 7704 --tls-auth-clients no --bind 127.0.0.1 \
  --tls-cert-file "$dir/cert.pem" --tls-key-file "$dir/key.pem" --save '' --appendonly no --dir "$dir"
pid[redis-tls]=${pid[redis]} port[redis-tls]=7704
exec 3<>/dev/tcp/127.0.0.1/7703
resp SET bench 1000000000000 >&3
exec 3>&-
launch_all flaked 7710 bin/flaked
[[ -z $BEFORE ]] || launch_all before 7720 "$BEFORE"
launch floor-http 7705 bin/http 127.0.0.1:7705 http://127.0.0.1:7711/v1/ids

: >"$dir/results"
for ((round = 1; round <= ROUNDS; round++)); do
  printf 'round %d of %d\n' "$round" "$ROUNDS" >&2
  for row in "${ROWS[@]}"; do
    IFS='|' read -r name suffix servers pipeline thousands request <<<"$row"
    [[ $name =~ $ONLY ]] || continue
    for server in $servers ${BEFORE:+before}; do
      asked=$request
      [[ $server != redis ]] || asked='INCR bench'
      figures=$(measure "$server$suffix" "$pipeline" $((thousands * 1000)) "$asked")
      echo "$name|$server|${figures// /|}" >>"$dir/results"
    done
  done
done

# The ratios are those of each round: median, least and greatest. What disturbs a whole round is not in them. They are of
# requests a second, but in the rows CPU of processor time.
awk -F '|' -v rounds="$ROUNDS" '
  function sorted(list, a,   n, i, j, t) {
    n = split(list, a, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    return n
  }
  function median(list,   n, a) { n = sorted(list, a); return (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2 }
  function ratio(row, who, other,   n, a, b, i, list) {
    if (!((row, other) in rate) || who == other) return "-"
    n = split(row ~ /^CPU/ ? cpu[row, who] : rate[row, who], a, " "); split(row ~ /^CPU/ ? cpu[row, other] : rate[row, other], b, " ")
    for (i = 1; i <= n; i++) list = list " " (b[i] > 0 ? a[i] / b[i] : 0)
    sorted(list, a)
    return sprintf("%.2f %.2f-%.2f", median(list), a[1], a[n])
  }
  !($1 in seen) { seen[$1]; rows[++nrows] = $1 }
  !($2 in known) { known[$2]; names[++nnames] = $2 }
  { rate[$1, $2] = rate[$1, $2] " " $3; p99[$1, $2] = p99[$1, $2] " " $4; cpu[$1, $2] = cpu[$1, $2] " " $5 }
  END {
    if (NR == 0) exit
    printf "medians of %d rounds; ratios: median, least-greatest\n\n%-13s %-7s %11s %8s %15s %15s %15s %15s\n", rounds, "request", "server", "requests/s", "p99, ms", "cpu us/request", "x floor", "x redis", "x before"
    for (r = 1; r <= nrows; r++) for (i = 1; i <= nnames; i++) {
      row = rows[r]; who = names[i]
      if ((row, who) in rate) printf "%-13s %-7s %11.0f %8.3f %15.2f %15s %15s %15s\n", row, who, median(rate[row, who]), median(p99[row, who]), median(cpu[row, who]), ratio(row, who, "floor"), ratio(row, who, "redis"), ratio(row, who, "before")
    }
  }' "$dir/results"

# IDs in one process. Maven and a JDK fetch and run uid-generator.
[[ IDs =~ $ONLY ]] || exit 0
launch_flaked stock 7730 bin/flaked --layout wide16 --listen "unix:$dir/stock.sock"
peer=''
if command -v mvn javac >/dev/null &&
  mvn -q -f bench/uid-generator/pom.xml dependency:build-classpath -Dmdep.outputFile="$dir/classpath" >"$dir/mvn.log" 2>&1 &&
  javac -cp "$(<"$dir/classpath")" -d "$dir" bench/uid-generator/Uid.java; then
  peer="java -cp $dir:$(<"$dir/classpath") Uid"
fi
bin/ahead -socket "$dir/stock.sock" -peer "$peer" -rounds "$ROUNDS" -for "$((SCALE * 10))ms"
