#!/usr/bin/env bash
#
# loss.sh measures for how long users wait when nodes start and restart, and when ZooKeeper is
# away or loses its data. It prints a table. With two binaries it measures both at the same time.
#
#     bench/loss.sh BINARY [BINARY2]      about six minutes
#
# It starts ZooKeeper servers and nodes of its own on loopback, with flaked's default times.
set -euo pipefail
cd "$(dirname "$0")/.."

(($# == 1 || $# == 2)) || { sed -n '3,8s/^# \?//p' "$0" >&2; exit 2; }
binaries=("$@")
for i in "${!binaries[@]}"; do
  binaries[i]=$(cd "$OLDPWD" && realpath -e -- "${binaries[i]}")
done
exports=$(scripts/zk-dev.sh install)
eval "$exports"
exec go run ./bench/loss "${binaries[@]}"
