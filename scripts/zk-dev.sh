#!/usr/bin/env bash
#
# zk-dev.sh runs a real ZooKeeper on loopback, for development and for tests.
# `zk-dev.sh --help` says how. It needs Linux, bash and Go. If ZooKeeper or Java is missing, it
# installs them as root, or unpacks them without root.
#
# This script checks the arguments and finds Java and ZooKeeper's jars. The Go program
# internal/testkit/zkdev starts, stops and lists the servers.
#
# stdout carries only results (the export line, a path, a table), so that
# eval "$(scripts/zk-dev.sh start)" works. Messages for people go to stderr.
set -euo pipefail

usage() {
  cat <<'HELP'
zk-dev.sh: a real ZooKeeper on 127.0.0.1, for development.

  eval "$(scripts/zk-dev.sh start)"              one server on port 2181; sets FLAKED_ZK
  eval "$(scripts/zk-dev.sh start --nodes 3)"    an ensemble on 2181, 2182, 2183
  scripts/zk-dev.sh status                       list the servers and the leader
  scripts/zk-dev.sh logs -f                      follow their logs
  scripts/zk-dev.sh stop                         stop them; the data stays
  scripts/zk-dev.sh stop --wipe                  stop them and remove the data

Commands
  start       start servers that do not run, wait until they serve, print
              `export FLAKED_ZK=...` as the last line. It may be run again.
  stop        stop the servers started in this directory, and nothing else.
  status      exit 0: all servers serve; 1: some run, not all serve; 3: none runs.
  logs [-f]   print the last lines of each server's log; -f follows them.
  dir         print the directory (DIR/state in it is yours: --wipe removes it too).
  install     install missing ZooKeeper jars and Java; print exports of their paths.
  classpath   print the jars' paths, as `install` would export them.
  java        print the path of the java binary, likewise.

Options
  --nodes 1|3   number of servers. Default: as last time in this directory, else 1.
  --port N      client port of the first server; the others follow. 0 picks free ports.
                Default: as last time in this directory, else 2181.
                An ensemble of three also uses N+707.. and N+1707.. among itself.
  --dir D       directory of data, logs and pid files.
                Default: ${TMPDIR:-/tmp}/flaked-zk-<uid>.
  --wipe        with stop: remove the data, too.
  -f, --follow  with logs: keep following.
  -h, --help    this text.

Environment
  FLAKED_ZK_CLASSPATH, FLAKED_ZK_JAVA
                use these and do not search, e.g. '/opt/zookeeper/lib/*'.
  FLAKED_ZK_FROM=installed|apt|unpacked
                source of ZooKeeper. Default: the first of these that works:
                installed packages; apt-get install (root); packages unpacked under
                ${XDG_CACHE_HOME:-~/.cache}/flaked/zookeeper (no root).

To watch an election: `kill -9` the leader of three (`status` shows its pid), look
at `status`, and `start` again.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
misuse() { say "$*"; say "See $0 --help"; exit 2; }

# ---------------------------------------------------------------- arguments

command='' nodes='' port='' dir='' wipe='' follow=''

parse() {
  while (($#)); do
    # Split --name=value into --name value.
    if [[ $1 == --*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
    case $1 in
      --nodes|--port|--dir)
        [[ -n ${2:-} ]] || misuse "$1 needs a value"
        printf -v "${1#--}" %s "$2"
        shift ;;
      --wipe) wipe=yes ;;
      -f|--follow) follow=yes ;;
      -h|--help) command=help; break ;;
      -*) misuse "unknown option $1" ;;
      *) [[ -z $command ]] || misuse "two commands: '$command' and '$1'. Give one"
        command=$1 ;;
    esac
    shift
  done

  case $command in
    start|stop|status|logs|dir|install|classpath|java) ;;
    help) usage; exit ;;
    '') misuse 'a command is required: start, stop, status, logs, dir, install, classpath or java' ;;
    *) misuse "unknown command '$command'" ;;
  esac
  [[ $nodes =~ ^(|1|3)$ ]] || misuse "--nodes must be 1 or 3, not '$nodes'"
  [[ $port =~ ^(|0|[1-9][0-9]{0,4})$ ]] || misuse "--port must be a number from 0 to 65535 without leading zeros, not '$port'"
  [[ $command == start || -z $nodes$port ]] || misuse "--nodes and --port are flags of start. $command takes them from the directory"
  [[ $command == stop || -z $wipe ]] || misuse '--wipe is a flag of stop'
  [[ $command == logs || -z $follow ]] || misuse '-f is a flag of logs'
  [[ ${FLAKED_ZK_FROM:=} =~ ^(|installed|apt|unpacked)$ ]] || misuse "FLAKED_ZK_FROM must be installed, apt or unpacked, not '$FLAKED_ZK_FROM'"

  if [[ -z $dir ]]; then
    dir=${TMPDIR:-/tmp}/flaked-zk-$UID
    # Everybody may write to the parent of the default directory, so refuse a link there.
    [[ ! -L $dir ]] || die "$dir is a link. Choose another directory with --dir"
  fi
  # internal/testkit/zkdev recognises our processes by this path, so it must be canonical.
  dir=$(realpath -m -- "$dir")
}

# ------------------------------------------------- finding ZooKeeper and Java

classpath=${FLAKED_ZK_CLASSPATH:-} java=${FLAKED_ZK_JAVA:-}
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/flaked/zookeeper

readonly DOCKER='docker run -d -p 127.0.0.1:2181:2181 zookeeper:3.9'
# The jars that a server needs. The manifest of zookeeper.jar names more.
readonly JARS=(zookeeper zookeeper-jute metrics-core snappy-java slf4j-api slf4j-simple)

found() { [[ -n $classpath && -n $java ]]; }
from()  { [[ -z $FLAKED_ZK_FROM || $FLAKED_ZK_FROM == "$1" ]]; }

# find_zookeeper sets classpath and java, and installs what is missing.
find_zookeeper() {
  [[ -z $java || -x $java ]] || die "FLAKED_ZK_JAVA: $java is not an executable file. Correct the path"
  if from installed; then look_installed; fi
  if ! found; then
    trap not_found EXIT
    if from apt && ((EUID == 0)) && have apt-get; then apt_install; fi
    if ! found && from unpacked; then look "$cache"; fi
    if ! found && from unpacked && have apt-get && have dpkg-deb; then unpack; look "$cache"; fi
    found || exit 1
    trap - EXIT
  fi
}

not_found() {
  say 'ZooKeeper and Java not found, and installing them failed. One of these helps:'
  say '  Debian, Ubuntu:   apt-get install libzookeeper-java default-jre-headless'
  say "  elsewhere:        install Java, unpack a ZooKeeper release, and set FLAKED_ZK_CLASSPATH='/path/to/zookeeper/lib/*'"
  say "  Docker:           $DOCKER, and export FLAKED_ZK=127.0.0.1:2181"
  [[ -z $FLAKED_ZK_FROM ]] || say "  (FLAKED_ZK_FROM=$FLAKED_ZK_FROM: no other source was tried)"
}

# look sets classpath and java if they are in Debian's packages below the directory $1. Other
# arguments are paths of java that come first.
look() {
  local at=$1/usr/share/java j
  if [[ -z $classpath && -r $at/zookeeper.jar && -r $at/slf4j-simple.jar ]]; then
    classpath=$(printf ':%s.jar' "${JARS[@]/#/$at/}")
    classpath=${classpath#:}
  fi
  for j in "${@:2}" "$1"/usr/lib/jvm/*/bin/java; do
    if [[ -z $java && -x $j ]]; then java=$j; fi
  done
}

look_installed() { look '' "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; }

apt_install() {
  local missing=()
  [[ -n $classpath ]] || missing+=(libzookeeper-java)
  [[ -n $java ]] || missing+=(default-jre-headless)
  say "installing ${missing[*]} with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  # The old package lists may suffice if they cannot be refreshed.
  refresh_packages
  if quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${missing[@]}"; then look_installed; fi
}

# unpack downloads ZooKeeper and Java and unpacks them in $cache, without root.
unpack() (
  mkdir -p "$(dirname "$cache")"
  exec 8>"$cache.lock"
  flock 8
  look "$cache" # another process may have unpacked them by now
  if found; then exit; fi
  say "downloading ZooKeeper and Java to $cache ..."
  tmp=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  mkdir -p "$tmp"/{lists,cache/archives}/partial "$tmp"/{debs,root}
  cd "$tmp/debs"
  # Package lists of the user's own: root may never have run `apt-get update`, or long ago.
  apt=(-o "Dir::State::Lists=$tmp/lists" -o "Dir::Cache=$tmp/cache")
  quietly apt-get "${apt[@]}" update
  # default-jre-headless holds only links. The program is in a package that it depends on.
  jre=$(apt-cache "${apt[@]}" depends default-jre-headless 2>/dev/null | grep -om1 'openjdk-[0-9]*-jre-headless') ||
    die 'apt-get update fetched no package lists'
  quietly apt-get "${apt[@]}" download lib{zookeeper,dropwizard-metrics,snappy,slf4j}-java "$jre"
  for deb in *.deb; do dpkg-deb -x "$deb" "$tmp/root"; done
  cd "$tmp/root"
  # The packages link to Java's configuration as /etc/java-...: make those links relative.
  find . -lname '/etc/java-*' -exec sh -c 'ln -srfn ".$(readlink "$0")" "$0"' {} \;
  # Make the class archive that an installation would have made. Java starts faster with it.
  set -- usr/lib/jvm/*/bin/java # several names for one program
  quietly "$1" -Xshare:dump
  rm -rf "$cache"
  mv -T "$tmp/root" "$cache"
)

# ----------------------------------------------------------------- commands

# zkdev runs internal/testkit/zkdev. Descriptor 9 is the lock, which no server may inherit.
zkdev() { "$root/bin/zkdev" "$@" 9>&-; }

build_zkdev() {
  root=$(cd "$(dirname "$0")/.." && pwd)
  have go || PATH=$PATH:/usr/local/go/bin
  have go || die 'Go not found. Install it: https://go.dev/dl'
  mkdir -p "$root/bin"
  # One build at a time, so that nobody runs a file that is only half written. A program
  # that is current is not built again.
  (flock 8 && cd "$root" && CGO_ENABLED=0 go build -buildvcs=false -o bin/zkdev ./internal/testkit/zkdev) 8>"$root/bin/zkdev.lock"
}

# lock ensures that only one zk-dev.sh works in the directory. `stop --wipe` may remove the
# lock file after we opened it and before we lock it: then lock starts again.
lock() {
  (umask 077 && mkdir -p -- "$dir")
  [[ -O $dir ]] || die "$dir belongs to another user. Choose another directory with --dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || die "another zk-dev.sh is still working in $dir. Try again"
  [[ $dir/lock -ef /proc/self/fd/9 ]] || lock
}

start() {
  local addresses
  lock
  # Nothing is needed if all servers serve already.
  zkdev status "$dir" >/dev/null 2>&1 || find_zookeeper
  addresses=$(FLAKED_ZK_CLASSPATH=$classpath FLAKED_ZK_JAVA=$java zkdev start "$dir" "${nodes:-0}" "${port:--1}")
  # On a terminal the export line is only printed, so it sets nothing.
  if [[ -t 1 ]]; then say "To set it in your shell: eval \"\$($0 start --dir $dir)\""; fi
  echo "export FLAKED_ZK=$addresses"
}

stop() {
  local count
  if [[ ! -d $dir ]]; then
    say "nothing was started in $dir"
    return
  fi
  lock
  count=$(zkdev stop "$dir")
  if [[ -z $wipe ]]; then
    say "stopped $count server(s). The data stays in $dir (stop --wipe removes it)"
    return
  fi
  # --dir may be any directory, even a home directory. So remove only known names, and the
  # directory itself only if it is empty.
  rm -rf "$dir"/node{1,2,3} "$dir/state" "$dir/lock"
  rmdir "$dir" 2>/dev/null || true
  say "stopped $count server(s) and removed the data in $dir"
}

logs() {
  local files
  shopt -s nullglob
  files=("$dir"/node[123]/log)
  ((${#files[@]})) || die "no logs in $dir"
  exec tail -v -n 50 ${follow:+-F} -- "${files[@]}"
}

parse "$@"
[[ -r /proc/self/cmdline ]] || die "Linux is required, for /proc. Elsewhere: $DOCKER"
case $command in
  start|stop) build_zkdev; "$command" ;;
  status) build_zkdev; zkdev status "$dir" ;;
  logs) logs ;;
  dir) echo "$dir" ;;
  install)
    find_zookeeper
    printf 'export FLAKED_ZK_CLASSPATH=%q\nexport FLAKED_ZK_JAVA=%q\n' "$classpath" "$java" ;;
  classpath) find_zookeeper; echo "$classpath" ;;
  java) find_zookeeper; echo "$java" ;;
esac
