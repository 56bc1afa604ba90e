#!/usr/bin/env bash
#
# trial-python.sh runs clients/python/trial under the servers that people use, beside a node: gunicorn, uWSGI, eventlet,
# celery, uvicorn and Jupyter. Each answers with IDs of which none may come twice.
#
#   scripts/trial-python.sh [PYTHON...]      python3, and those of pyenv for 3.9 and 3.13, if none is given
#
# It needs bin/flaked. The packages are in bin/trial-python-VERSION, and made anew if their list changes.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=lib.sh
. scripts/lib.sh

(($#)) || set -- python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.{9,13}.*/bin/python
dir=$(mktemp -d) node=
stop() {
  [[ -z $node ]] || kill "$node" 2>/dev/null || true
  rm -rf "$dir"
}
trap stop EXIT

bin/flaked serve --dev --listen 127.0.0.1:7649 --admin off --log-format text 2>"$dir/node" &
node=$!
for ((i = 0; ; i++)); do
  if grep -qs serving "$dir/node"; then break; fi
  ((i < 300)) || die "the node did not serve within 30 s: $(tail -n 5 "$dir/node")"
  sleep 0.1
done

failed=
for python; do
  [[ $python != *'*'* ]] || { say "NOT RUN: there is no $python"; continue; }
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  venv=bin/trial-python-$version
  if ! cmp -s clients/python/trial/requirements.txt "$venv/installed.txt"; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    quietly "$venv/bin/pip" install --disable-pip-version-check -r clients/python/trial/requirements.txt
    cp clients/python/trial/requirements.txt "$venv/installed.txt"
  fi
  # Not editable: it is used as it is released.
  quietly "$venv/bin/pip" install --disable-pip-version-check --force-reinstall --no-deps ./clients/python
  "$PWD/$venv/bin/python" clients/python/trial/trial.py 127.0.0.1:7649 || { failed+=" $version"; continue; }
  ran python "$version"
  ran_packages "$venv/bin/python"
done
[[ -z $failed ]] || die "FAILED with Python$failed"
