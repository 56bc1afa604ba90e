#!/usr/bin/env bash
#
# zk-dev.sh runs a real ZooKeeper on loopback, for development and for tests.
# `zk-dev.sh --help` says how. It needs Linux and bash. If ZooKeeper or Java is missing, it
# installs them as root, or unpacks them without root.
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
  versions    print the releases that `make zookeepers` tests.

Options
  --nodes 1|3   number of servers. Default: as last time in this directory, else 1.
  --port N      client port of the first server; the others follow. 0 picks free ports.
                Default: as last time in this directory, else 2181.
                An ensemble of three also uses N+707.. and N+1707.. among itself.
  --version V   with start, install, classpath and java: this release, such as 3.9.5, from Maven
                Central. It needs Maven. Default: Debian's.
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
                Releases of Maven Central lie beside it, in zookeeper-V.
  ZK_DEV_HEAP
                the memory of each server's Java heap. Default: 64m.

To watch an election: `kill -9` the leader of three (`status` shows its pid), look
at `status`, and `start` again.
HELP
}

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
misuse() { say "$*"; say "See $0 --help"; exit 2; }

# ---------------------------------------------------------------- arguments

command='' nodes='' port='' version='' dir='' wipe='' follow=''

# The releases that `make zookeepers` tests. docs/clients.md shows them in a table, which internal/check/docs compares.
readonly VERSIONS='3.5.10 3.6.4 3.8.6 3.9.5'

parse() {
  while (($#)); do
    # Split --name=value into --name value.
    if [[ $1 == --*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
    case $1 in
      --nodes|--port|--version|--dir)
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
    start|stop|status|logs|dir|install|classpath|java|versions) ;;
    help) usage; exit ;;
    '') misuse 'a command is required: start, stop, status, logs, dir, install, classpath, java or versions' ;;
    *) misuse "unknown command '$command'" ;;
  esac
  [[ $nodes =~ ^(|1|3)$ ]] || misuse "--nodes must be 1 or 3, not '$nodes'"
  [[ $port =~ ^(|0|[1-9][0-9]{0,4})$ ]] || misuse "--port must be a number from 0 to 65535 without leading zeros, not '$port'"
  [[ $command == start || -z $nodes$port ]] || misuse "--nodes and --port are flags of start. $command takes them from the directory"
  [[ $version =~ ^(|[0-9]+\.[0-9]+\.[0-9]+)$ ]] || misuse "--version must be a release, such as 3.9.5, not '$version'"
  [[ $command =~ ^(start|install|classpath|java)$ || -z $version ]] || misuse '--version is a flag of start, install, classpath and java'
  [[ $command == stop || -z $wipe ]] || misuse '--wipe is a flag of stop'
  [[ $command == logs || -z $follow ]] || misuse '-f is a flag of logs'
  [[ ${FLAKED_ZK_FROM:=} =~ ^(|installed|apt|unpacked)$ ]] || misuse "FLAKED_ZK_FROM must be installed, apt or unpacked, not '$FLAKED_ZK_FROM'"

  if [[ -z $dir ]]; then
    dir=${TMPDIR:-/tmp}/flaked-zk-$UID
    # Everybody may write to the parent of the default directory, so refuse a link there.
    [[ ! -L $dir ]] || die "$dir is a link. Choose another directory with --dir"
  fi
  # pid recognises our processes by this path, so it must be canonical.
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
  if [[ -n $version ]]; then from_maven; return; fi
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

# from_maven sets classpath to the jars of release $version, which it gets from Maven Central. Its logging goes to
# slf4j-simple, as that of Debian's.
from_maven() {
  local jars=$cache-$version tmp
  classpath=''
  look_installed # Java
  if ! have mvn || [[ -z $java ]]; then die 'a release of ZooKeeper needs Maven and Java: apt-get install maven'; fi
  classpath=$jars/'*'
  [[ ! -e $jars ]] || return 0
  say "getting ZooKeeper $version from Maven Central ..."
  mkdir -p "${cache%/*}"
  tmp=$(mktemp -d "$jars.XXXXXX")
  cat >"$tmp/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>flaked</groupId><artifactId>zookeeper</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>$version</version>
      <exclusions>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>
        <exclusion><groupId>log4j</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>1.7.36</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
POM
  # Another process may do the same at the same time: the first one to be ready wins.
  if quietly mvn -B -q -ntp -f "$tmp/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$tmp/jars"; then
    mv -T "$tmp/jars" "$jars" 2>/dev/null || [[ -e $jars ]]
    rm -rf "$tmp"
  else
    rm -rf "$tmp"
    die "Maven could not get ZooKeeper $version"
  fi
}

# ----------------------------------------------------------------- commands

# lock ensures that only one zk-dev.sh works in the directory. `stop --wipe` may remove the
# lock file after we opened it and before we lock it: then lock starts again.
lock() {
  (umask 077 && mkdir -p -- "$dir")
  [[ -O $dir ]] || die "$dir belongs to another user. Choose another directory with --dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || die "another zk-dev.sh is still working in $dir. Try again"
  [[ $dir/lock -ef /proc/self/fd/9 ]] || lock
}

# known sets have and first to the number of servers of the last start and to the client port of the first one. have is 0
# if there was no start.
known() {
  for have in 3 2 1 0; do
    [[ ! -e $dir/node$have/zoo.cfg ]] || break
  done
  first=$(sed -n 's/^clientPort=//p' "$dir/node1/zoo.cfg" 2>/dev/null) || true
  ((have == 0)) || [[ -n $first ]] || die "$dir/node1/zoo.cfg has no clientPort. 'stop --wipe' clears the directory"
}

# pid prints the pid of server $1, or nothing if it does not run. Pids are reused, so the process must have been started
# with the server's configuration file.
pid() {
  local p
  p=$(cat "$dir/node$1/pid" 2>/dev/null) || return 0
  if tr '\0' '\n' 2>/dev/null <"/proc/$p/cmdline" | grep -qxF "$dir/node$1/zoo.cfg"; then echo "$p"; fi
} 2>/dev/null

# running prints how many of the servers 1 to $1 run.
running() {
  local i n=0
  for ((i = 1; i <= $1; i++)); do [[ -z $(pid "$i") ]] || ((++n)); done
  echo "$n"
}

# mode prints standalone, leader or follower, or nothing while server $1 does not serve. A server answers `ruok` long
# before it serves, so this asks `srvr`.
mode() {
  (exec 3<>"/dev/tcp/127.0.0.1/$((first + $1 - 1))" && printf srvr >&3 && timeout 1 sed -n 's/^Mode: //p' <&3) 2>/dev/null || true
}

# free fails if a process listens on one of the ports of a start at port $1.
free() {
  local i p
  for ((i = 0; i < nodes; i++)); do
    for p in $(($1 + i)) $(($1 + 707 + i)) $(($1 + 1707 + i)); do
      ((p <= 65535)) || die "--port is too high: the servers need port $p, and the highest port is 65535"
      if (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; then taken=$p; return 1; fi
      ((nodes > 1)) || break
    done
  done
}

# configure writes the files of server $1.
configure() {
  local d=$dir/node$1 i
  mkdir -p "$d/data"
  {
    # A tick of 500 ms allows sessions of 1 s.
    printf '%s\n' tickTime=500 "dataDir=$d/data" "clientPort=$((first + $1 - 1))" clientPortAddress=127.0.0.1 \
      maxClientCnxns=0 admin.enableServer=false '4lw.commands.whitelist=*'
    if ((nodes > 1)); then
      printf '%s\n' initLimit=20 syncLimit=10 standaloneEnabled=false
      for ((i = 1; i <= nodes; i++)); do echo "server.$i=127.0.0.1:$((first + i + 706)):$((first + i + 1706))"; done
      echo "$1" >"$d/data/myid"
    fi
  } >"$d/zoo.cfg.new"
  mv "$d/zoo.cfg.new" "$d/zoo.cfg"
}

# launch starts server $1 in a session of its own, so that neither Ctrl-C nor the end of this terminal stops it. No server
# may inherit descriptor 9, the lock.
launch() {
  local d=$dir/node$1
  if [[ -e $d/log ]]; then mv "$d/log" "$d/log.old"; fi # a failed start shows its own log only
  (cd "$d" && exec setsid "$java" "-Xmx${ZK_DEV_HEAP:-64m}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -Dzookeeper.jmx.log4j.disable=true -Dorg.slf4j.simpleLogger.showDateTime=true \
    '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS' \
    -Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn \
    -cp "$classpath" org.apache.zookeeper.server.quorum.QuorumPeerMain "$d/zoo.cfg") </dev/null >"$d/log" 2>&1 9>&- &
  echo $! >"$d/pid"
  disown
}

# await waits until all servers serve, with one leader among them. It fails if one of them has ended.
await() {
  local i modes deadline=$((SECONDS + 60))
  until modes=$(for ((i = 1; i <= nodes; i++)); do mode "$i"; done) &&
    (($(wc -w <<<"$modes") == nodes && $(grep -cE 'leader|standalone' <<<"$modes") == 1)); do
    for ((i = 1; i <= nodes; i++)); do
      if [[ -z $(pid "$i") || $SECONDS -ge $deadline ]]; then
        say "the server in $dir/node$i has ended, or does not serve within a minute. The end of its log:"
        tail -n 15 "$dir/node$i/log" >&2
        return 1
      fi
    done
    sleep 0.1
  done
}

# end ends servers by SIGTERM, and by SIGKILL if that takes longer than 5 s.
end() {
  local signal i p tries
  for signal in TERM KILL; do
    for i in "$@"; do
      p=$(pid "$i")
      [[ -n $p ]] || continue
      [[ $signal == TERM ]] || say "server $i (pid $p) did not stop within 5 s, killing it"
      kill -"$signal" "$p" 2>/dev/null || true
      kill -CONT "$p" 2>/dev/null || true # a process that SIGSTOP has stopped handles no SIGTERM
    done
    for ((tries = 0; tries < 50; tries++)); do
      (($(running 3) > 0)) || return 0
      sleep 0.1
    done
  done
  die 'a server does not end on SIGKILL. Try again'
}

start() {
  local have first taken='' i up started=() addresses=''
  lock
  known
  up=$(running 3)
  [[ -z $nodes || $have == 0 || $nodes == "$have" ]] ||
    die "$dir has the data of $have server(s), not $nodes. Run 'stop --wipe' first, or use another --dir"
  nodes=$((have > 0 ? have : ${nodes:-1}))
  if ((up > 0)); then
    [[ ${port:-0} == 0 || $port == "$first" ]] || die "already running on port $first, not $port. Run 'stop' first, or use another --dir"
  else
    first=${port:-${first:-2181}}
    if ((first == 0)); then
      # Below the range from which the kernel takes ports for outgoing connections.
      until first=$((15000 + RANDOM % 12000)) && free "$first"; do :; done
    fi
    free "$first" ||
      die "port $taken is in use. If that is your ZooKeeper: export FLAKED_ZK=127.0.0.1:$taken. Else choose other ports with --port N, or free ones with --port 0"
    for ((i = 1; i <= nodes; i++)); do configure "$i"; done
  fi
  if ((up < nodes)); then find_zookeeper; fi
  for ((i = 1; i <= nodes; i++)); do
    [[ -z $(pid "$i") ]] || continue
    launch "$i"
    started+=("$i")
    # Just after exec the kernel shows no arguments of Java yet.
    for _ in {1..50}; do [[ -z $(pid "$i") ]] || break; sleep 0.1; done
  done
  await || { end "${started[@]}"; exit 1; }
  say "ready, $nodes server(s) (data and logs: $dir)"
  for ((i = 0; i < nodes; i++)); do addresses+=,127.0.0.1:$((first + i)); done
  # On a terminal the export line is only printed, so it sets nothing.
  if [[ -t 1 ]]; then say "To set it in your shell: eval \"\$($0 start --dir $dir)\""; fi
  echo "export FLAKED_ZK=${addresses#,}"
}

status() {
  local have first i p m serving=0 up=0 row='%-6s %-16s %-8s %-14s %s\n'
  known
  if ((have == 0)); then
    say "nothing was started in $dir"
    exit 3
  fi
  # shellcheck disable=SC2059 # the format is above
  printf "$row" SERVER ADDRESS PID MODE DIRECTORY
  for ((i = 1; i <= have; i++)); do
    p=$(pid "$i") m=stopped
    if [[ -n $p ]]; then
      ((++up))
      m=$(mode "$i")
      [[ -z $m ]] || ((++serving))
    fi
    # shellcheck disable=SC2059
    printf "$row" "$i" "127.0.0.1:$((first + i - 1))" "${p:--}" "${m:-not serving}" "$dir/node$i"
  done
  ((serving < have)) || exit 0
  ((up > 0)) || exit 3
  exit 1
}

stop() {
  local count
  if [[ ! -d $dir ]]; then
    say "nothing was started in $dir"
    return
  fi
  lock
  count=$(running 3)
  end 1 2 3
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
  start | stop | status | logs) "$command" ;;
  dir) echo "$dir" ;;
  install)
    find_zookeeper
    printf 'export FLAKED_ZK_CLASSPATH=%q\nexport FLAKED_ZK_JAVA=%q\n' "$classpath" "$java" ;;
  classpath) find_zookeeper; echo "$classpath" ;;
  java) find_zookeeper; echo "$java" ;;
  versions) echo "$VERSIONS" ;;
esac
