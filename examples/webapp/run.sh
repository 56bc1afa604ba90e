#!/usr/bin/env bash
#
# run.sh: the web service and its node, as two plain processes that share a unix
# socket, as the two containers of a pod would. `run.sh --help` says how.
set -euo pipefail

usage() {
  cat <<'HELP'
run.sh: a web service with a flaked node beside it.

  examples/webapp/run.sh [ADDR]     serve on ADDR (127.0.0.1:8080) until Ctrl-C

Then, in another terminal:
  curl -i -d item=book http://127.0.0.1:8080/orders

Environment
  FLAKED_ZK      the ZooKeeper to use. Default: scripts/zk-dev.sh starts one
  WEBAPP_DIR     where the socket, the node's state and its log go. Default: a
                 directory that is removed at the end

The node's log is in flaked.log there, the service's comes here. When one of the
two ends, so does the other.
HELP
}

case $#:${1:-} in
  0:) addr=127.0.0.1:8080 ;;
  1:-h | 1:--help) usage; exit 0 ;;
  1:-*) usage >&2; exit 2 ;;
  1:*) addr=$1 ;;
  *) usage >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin

pids=() temp=
finish() {
  trap - EXIT INT TERM
  # The service first: it has to find the node until it has answered all.
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" 2>/dev/null || true
  done
  [[ -z $temp ]] || rm -rf "$temp"
}
trap finish EXIT
trap 'exit 0' INT TERM

if [[ -z ${WEBAPP_DIR:-} ]]; then
  temp=$(mktemp -d)
  WEBAPP_DIR=$temp
fi
if [[ -z ${FLAKED_ZK:-} ]]; then
  zk=$(scripts/zk-dev.sh start)
  eval "$zk"
fi
go build -o "$WEBAPP_DIR/flaked" ./cmd/flaked
go build -o "$WEBAPP_DIR/webapp" ./examples/webapp

# The first process, the sidecar. Nobody but the service reaches it.
"$WEBAPP_DIR/flaked" serve --zk "$FLAKED_ZK" --bootstrap --heartbeat 200ms --confirm-time 800ms --release-on-exit \
  --listen "unix:$WEBAPP_DIR/flaked.sock" --admin off --state-dir "$WEBAPP_DIR/state" >"$WEBAPP_DIR/flaked.log" 2>&1 &
pids+=($!)
# The sequence of the orders' numbers. It can be created as soon as the node is ready.
until "$WEBAPP_DIR/flaked" seq show order --zk "$FLAKED_ZK" >/dev/null 2>&1; do
  "$WEBAPP_DIR/flaked" seq create order --zk "$FLAKED_ZK" >"$WEBAPP_DIR/create.log" 2>&1 || sleep 0.2
done &
# The second. It need not wait for the first.
"$WEBAPP_DIR/webapp" --listen "$addr" --flaked "unix:$WEBAPP_DIR/flaked.sock" &
pids+=($!)
wait -n "${pids[@]}"
