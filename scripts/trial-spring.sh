#!/usr/bin/env bash
#
# trial-spring.sh builds clients/java/trial with releases of Spring Boot, and runs it with and without AOT beside a node:
# two clients in one application, inserts, a @DataJpaTest, and the health of clients and of spring-data-redis.
#
#   scripts/trial-spring.sh [BOOT...]
#
# It needs bin/flaked, Maven, and the modules of clients/java in the local repository (mvn install).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=lib.sh
. scripts/lib.sh
(($#)) || set -- 3.2.0 3.5.16 4.0.7

dir=$(mktemp -d) pids=()
stop() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap stop EXIT

# wait_for FILE TEXT waits for a minute until the file has the text.
wait_for() {
  for ((i = 0; i < 600; i++)); do
    if grep -q -- "$2" "$1" 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "trial-spring: no \"$2\" within a minute in:" >&2
  tail -n 30 "$1" >&2
  exit 1
}

bin/flaked serve --dev --listen 127.0.0.1:7639 --admin 127.0.0.1:7640 --log-format text 2>"$dir/node" &
pids+=($!)
wait_for "$dir/node" serving
for boot; do
  cp -r clients/java/trial "$dir/$boot"
  if [[ $boot == 3.* ]]; then # its test of JPA is in another package
    sed -i s/spring-boot-starter-data-jpa-test/spring-boot-starter-test/ "$dir/$boot/pom.xml"
    sed -i s/boot.data.jpa.test.autoconfigure/boot.test.autoconfigure.orm.jpa/ "$dir/$boot"/src/test/java/trial/slice/*
  fi
  (cd "$dir/$boot" && mvn -B -q -ntp -Dboot="$boot" -Dnode=127.0.0.1:7639 package) >&2
  for aot in false true; do
    log=$dir/$boot-$aot
    java -Dspring.aot.enabled=$aot -jar "$dir/$boot/target/trial-1.jar" --node=127.0.0.1:7639 --server.port=7641 \
      --spring.data.redis.port=7639 --spring.jpa.hibernate.ddl-auto=create --spring.main.banner-mode=off \
      --management.endpoint.health.show-details=always >"$log" 2>&1 &
    pid=$!
    pids+=("$pid")
    wait_for "$log" TRIAL
    health=$(curl -s http://127.0.0.1:7641/actuator/health)
    kill "$pid"
    wait "$pid" || true
    ids=$(grep -o 'TRIAL .*' "$log")
    well=$(python3 -c '
import json, sys
parts = json.loads(sys.argv[1])["components"]
clients = {name: part["status"] for name, part in parts["flaked"]["components"].items()}
print("clients", clients, "redis", parts["redis"]["status"], parts["redis"]["details"].get("version"))' "$health")
    echo "Spring Boot $boot, AOT $aot: ${ids#TRIAL }, health: $well"
    if [[ $ids != 'TRIAL 100 different IDs'* || $well != "clients {'first': 'UP', 'second': 'UP'} redis UP 7."* ]]; then
      echo "trial-spring: FAILED with Spring Boot $boot: $health" >&2
      exit 1
    fi
  done
  ran spring-boot "$boot"
done
