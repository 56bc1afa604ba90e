#!/usr/bin/env bash
#
# check-release.sh makes the files of a release in dist/. Then it makes them again, from a copy of the tree with
# other names, modes, times and settings, and names the first file that differs. `make check-release` calls it:
#
#   scripts/check-release.sh VERSION EPOCH [OS/ARCH | clients]...
#
# With FRESH=1 the second build has an empty build cache (minutes).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=lib.sh
. scripts/lib.sh

elsewhere=$(mktemp -d)
trap 'chmod -R u+w "$elsewhere" && rm -rf "$elsewhere"' EXIT
version=$1 epoch=$2
shift 2

# members prints a line for each file of an archive, or a file that is none.
members() {
  # shellcheck disable=SC2016 # the shell that tar starts expands these
  local each='echo "$TAR_FILENAME $TAR_MODE $TAR_UID $TAR_MTIME $(sha256sum)"'
  case $1 in
    *.tar | *.tar.gz | *.tgz) tar -xf "$1" --to-command="$each" ;;
    *.deb) dpkg-deb --fsys-tarfile "$1" | tar -x --to-command="$each" ;;
    *.jar | *.whl) unzip -Z "$1" && unzip -v "$1" ;;
    *) cat "$1" ;;
  esac
}

# A clone of somebody else: private files, old times, and another place, zone, language and width of the terminal.
tree="$elsewhere/another tree"
(
  umask 077
  mkdir "$tree"
  git ls-files -z | xargs -0 cp --parents -t "$tree"
  chmod -R go= "$tree"
  find "$tree" -exec touch -h -d 2001-02-03 {} +
)
scripts/release.sh "$version" "$epoch" dist "$@"
[[ -z ${FRESH:-} ]] || export GOCACHE=$elsewhere/cache
(
  umask 077
  cd "$tree"
  export TZ=Asia/Tokyo LC_ALL=C.UTF-8 COLUMNS=40 HOSTNAME=elsewhere
  scripts/release.sh "$version" "$epoch" "$elsewhere/dist" "$@" >/dev/null
)

while read -r name; do
  cmp -s "dist/$name" "$elsewhere/dist/$name" && continue
  diff <(cd dist && members "$name") <(cd "$elsewhere/dist" && members "$name") | head -n 20 >&2 || true
  die "dist/$name differs between two builds. The lines above are of its contents: < in dist/, > from another tree"
done < <({ ls dist && ls "$elsewhere/dist"; } | grep -vx SHA256SUMS | sort -u)
cmp dist/SHA256SUMS "$elsewhere/dist/SHA256SUMS"
say "$(wc -l <dist/SHA256SUMS) files are the same in two builds"
