#!/usr/bin/env bash
#
# test-clients.sh tests the clients in clients/, each with its language's own tools. Then it runs the cases of all
# clients, and the test with real nodes. Its messages go to stderr.
#
#   scripts/test-clients.sh [LANGUAGE...]      java, python and node, if none is given. Go is always there
#
# FLAKED_TEST_SUITES=no leaves out each client's own tests: only the cases and the real nodes are left.
#
# FLAKED_TEST_VERSIONS=1 also runs Java's modules, compiled once, with the oldest and the newest frameworks, and an
# application with three releases of Spring Boot. Node's client is tested with the releases of $node_versions, too, and
# Python's under many servers. docs/clients.md has the versions in a table, which internal/check/docs compares.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=lib.sh
. scripts/lib.sh
# shellcheck source-path=SCRIPTDIR source=lib-clients.sh
. scripts/lib-clients.sh

(($#)) || set -- java python node
venv=bin/clients-python node=clients/node java=clients/java
node_versions="18 20 22 24"

suites() { [[ ${FLAKED_TEST_SUITES:-} != no ]]; }

test_java() {
  cd "$java"
  suites || { mvn -B -q -ntp -pl flaked-client test-compile; return; }
  mvn -B -q -ntp verify
  [[ -n ${FLAKED_TEST_VERSIONS:-} ]] || return 0
  for versions in oldest newest; do
    mvn -B -q -ntp -P $versions -Dmaven.main.skip -Dmaven.javadoc.skip verify
  done
  for jdk in /usr/lib/jvm/*; do # virtual threads need a newer Java than the one that compiles
    grep -qs '^JAVA_VERSION="2[4-9]' "$jdk/release" || continue
    say "the client with $jdk"
    JAVA_HOME=$jdk mvn -B -q -ntp -pl flaked-client surefire:test
  done
  mvn -B -q -ntp -DskipTests install
  ../../scripts/trial-spring.sh
  ran java "$(java -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p')"
  # All versions in pom.xml have run above.
  sed -nE 's/.*<(hibernate|mybatis-plus|shardingsphere)\.version>([0-9.]*[0-9]).*/\1 \2/p' pom.xml |
    while read -r name version; do ran "$name" "$version"; done
}

# The venv has the packages that the client is tested with. It is made anew if their list changes.
test_python() {
  if ! cmp -s clients/python/pyproject.toml "$venv/installed.toml"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    quietly "$venv/bin/pip" install --disable-pip-version-check -e 'clients/python[dev]'
    cp clients/python/pyproject.toml "$venv/installed.toml"
  fi
  suites || return 0
  local tools=$PWD/$venv/bin
  cd clients/python
  "$tools/ruff" format --check -q .
  "$tools/ruff" check -q .
  "$tools/mypy" --no-error-summary
  "$tools/pytest" -q
  ran_packages "$tools/python"
  [[ -z ${FLAKED_TEST_VERSIONS:-} ]] || ../../scripts/trial-python.sh
}

test_node() {
  cd "$node"
  install_node_modules
  suites || { npm run --silent build; return; }
  npm test --silent
  npm run --silent lint
  [[ -n ${FLAKED_TEST_VERSIONS:-} ]] || return 0
  for version in $node_versions; do
    at=../../bin/node-$version # npm's package "node" has the program
    [[ -d $at/node_modules ]] || quietly npm install --prefix "$at" --no-save "node@$version"
    PATH=$PWD/$at/node_modules/node/bin:$PATH
    say "node $(node --version)"
    node --test test/*.test.mjs
    ran node "$(node -p process.versions.node)"
  done
  ran knex "$(sed -n 's/^  "version": "\(.*\)".*/\1/p' node_modules/knex/package.json)"
}

failed=() drivers=(-driver go=build)
for language; do
  say "$language ..."
  if ! tools_of "$language"; then
    say "NOT RUN: $language: its tools are missing"
    continue
  fi
  began=$SECONDS
  # In a condition, bash would go on after a command that fails.
  set +e
  (
    set -e
    case $language in
      java) test_java ;;
      python) test_python ;;
      node) test_node ;;
      *) die "there is no client for $language" ;;
    esac
  ) >&2
  status=$?
  set -e
  ((status == 0)) || failed+=("$language")
  say "$language: done in $((SECONDS - began)) s"
  case $language in
    java) drivers+=(-driver "java=java -cp $java/flaked-client/target/classes:$java/flaked-client/target/test-classes io.github.flaked.client.Driver") ;;
    python)
      drivers+=(-driver "python=$venv/bin/python clients/python/tests/driver.py sync"
        -driver "asyncio=$venv/bin/python clients/python/tests/driver.py asyncio")
      ;;
    node) drivers+=(-driver "node=node $node/test/driver.mjs") ;;
  esac
done

say 'the cases, and real nodes ...'
go test -vet=off -count=1 -timeout 10m -v ./internal/check/clients -run 'Cases|RealNodes' -args "${drivers[@]}" |
  grep -vE '^ *(=== |--- PASS: TestCases/)' || failed+=('the cases, or real nodes')
((${#failed[@]} == 0)) || die "FAILED: ${failed[*]}"
ran go "$(go env GOVERSION | sed 's/^go//')"
