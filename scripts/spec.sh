#!/usr/bin/env bash
# Checks the models of docs/spec with Spin. First: no run within the bounds breaks a property. Then: each rule counts.
# Without it some run breaks a property, and the shortest such run is printed. See docs/testing.md.
#
#   spec.sh                      everything, two checks at a time
#   spec.sh holds MODEL BOUNDS   one check of the properties
#   spec.sh counts MODEL RULE    the shortest run without one rule
set -euo pipefail
shopt -s inherit_errexit

self=$(realpath "$0")
models=$(realpath "$(dirname "$0")/../docs/spec")

# The bounds within which the properties are checked. A run without a rule is looked for within each in turn.
export worker='-DEND=4 -DSKEW=2 -DLOSSES=0 -DKILLS=0 -DGRANTS=2
-DEND=4 -DSKEW=2 -DLOSSES=0 -DKILLS=1 -DGRANTS=3
-DEND=4 -DSKEW=2 -DLOSSES=1 -DKILLS=0 -DGRANTS=2
-DEND=5 -DSKEW=1 -DLOSSES=1 -DKILLS=0 -DGRANTS=2'
export sequence='-DEND=4 -DLOSSES=1
-DEND=4 -DLOSSES=0'
export ordered='-DEND=4'

# build MODEL FLAGS OPTIONS makes ./pan, which goes through all runs. FLAGS are Spin's, OPTIONS the compiler's.
build() {
  # shellcheck disable=SC2086 # both are lists
  { spin $2 -a "$models/$1.pml" && gcc -O2 -w -DSAFETY -DNOREDUCE $3 -o pan pan.c; } >out 2>&1 || { cat out; exit 1; }
}

# replay MODEL FLAGS prints the run that ./pan has found.
replay() {
  # shellcheck disable=SC2086
  spin $2 -t -T -B -k "$1.pml.trail" "$models/$1.pml" | sed -n 's/^ *| /    /p'
}

# holds MODEL BOUNDS checks that no run breaks a property.
holds() {
  build "$1" "$2 -DWITHOUT=0" -DMEMLIM=8000
  ./pan -E -m100000 >out 2>&1 || true
  if [[ -e $1.pml.trail ]]; then
    printf '\nFAILED: %s %s breaks a property:\n%s\n' "$1" "$2" "$(replay "$1" "$2 -DWITHOUT=0")"
    exit 1
  elif ! grep -q 'errors: 0$' out || grep -qiE 'depth too small|out of memory|memory limit' out; then
    printf '\nFAILED: %s %s: not all runs were checked:\n%s\n' "$1" "$2" "$(<out)"
    exit 1
  fi
  echo "no run breaks a property: $1 $2: $(grep -oE '[0-9]+ states, stored' out), $SECONDS s"
}

# counts MODEL RULE prints the shortest run that breaks a property without the rule.
counts() {
  local bounds flags what
  what=$(sed -nE "s|^#define $2 +[0-9]+ +/\* (.*) \*/|\1|p" "$models/$1.pml")
  while read -r bounds; do
    flags="$bounds -DWITHOUT=$2"
    build "$1" "$flags" '-DBFS -DMEMLIM=8000'
    timeout 120 ./pan -E >out 2>&1 || true
    if [[ -e $1.pml.trail ]]; then
      printf '\n%s without %s (%s):\n%s\n' "$1" "$2" "$what" "$(replay "$1" "$flags")"
      return
    fi
  done <<<"${!1}"
  printf '\nFAILED: %s: no run breaks a property without %s\n' "$1" "$2"
  exit 1
}

if (($# == 3)); then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  "$@"
  exit
fi

for model in worker sequence ordered; do
  while read -r bounds; do printf '%s\n' holds $model "$bounds"; done <<<"${!model}"
done | xargs -d '\n' -n 3 -P 2 "$self"
for model in worker sequence ordered; do
  sed -nE "/define rule/q; s|^#define ([A-Z][A-Z0-9_]*) +[0-9]+ +/\*.*|counts\n$model\n\1|p" "$models/$model.pml"
done | xargs -d '\n' -n 3 -P 2 "$self"
