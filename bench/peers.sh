#!/usr/bin/env bash
#
# peers.sh finds redis-server and memcached for the benchmarks. If they are not installed, it
# unpacks Debian's packages in the cache directory. It installs nothing and starts no
# service. It prints a line `NAME PATH` for each, and `lib DIRECTORY` for their libraries.
set -euo pipefail

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/flaked/peers
readonly LIBRARIES=(libatomic1 libevent-2.1-7 libjemalloc2 liblzf1 libsasl2-2 libssl3 libsystemd0)

die() { printf 'bench/peers.sh: %s\n' "$*" >&2; exit 1; }

# unpack downloads both programs, with the libraries that are not installed.
unpack() {
  command -v apt-get >/dev/null || die "redis-server or memcached not found, and apt-get is missing. Install both"
  mkdir -p "$cache"
  local package libraries=()
  for package in "${LIBRARIES[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || libraries+=("$package")
  done
  printf 'bench/peers.sh: fetching redis-server and memcached from Debian\n' >&2
  (
    cd "$cache"
    apt-get download redis-server redis-tools memcached "${libraries[@]}" >apt.log 2>&1 ||
      { apt-get update && apt-get download redis-server redis-tools memcached "${libraries[@]}"; } >>apt.log 2>&1 ||
      { tail -n 5 apt.log >&2; exit 1; }
    for package in *.deb; do
      dpkg-deb -x "$package" root
    done
    rm -f -- *.deb
  ) || die "fetching the packages failed. Install redis-server and memcached"
}

find_one() {
  local name=$1
  command -v "$name" || { [[ -x $cache/root/usr/bin/$name ]] && printf '%s\n' "$cache/root/usr/bin/$name"; }
}

if ! find_one redis-server >/dev/null || ! find_one memcached >/dev/null; then
  unpack
fi
for name in redis-server memcached; do
  path=$(find_one "$name") || die "$name not found in the downloaded packages"
  printf '%s %s\n' "$name" "$path"
done
# The directory of unpacked libraries depends on the architecture.
for dir in "$cache"/root/usr/lib/*-linux-gnu; do
  [[ -d $dir ]] && printf 'lib %s\n' "$dir"
done
exit 0
