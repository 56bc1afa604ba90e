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
  classpath   print the classpath; install missing jars.
  java        print the path of the java binary; install Java if it is missing.

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
  FLAKED_ZK_FROM=installed|apt|unpacked|docker
                source of ZooKeeper. Default: the first of these that works:
                installed packages; apt-get install (root); packages unpacked under
                ${XDG_CACHE_HOME:-~/.cache}/flaked/zookeeper (no root); Docker.

To watch an election: `kill -9` the leader of three (`status` shows its pid), look
at `status`, and `start` again.
HELP
}

say()   { printf 'zk-dev: %s\n' "$*" >&2; }
die()   { say "$*"; exit 1; }
misuse() { say "$*"; say "See $0 --help"; exit 2; }

# ---------------------------------------------------------------- arguments

readonly MAX_NODES=3
readonly QUORUM_OFFSET=707 ELECTION_OFFSET=1707 # 2181 gives the customary 2888 and 3888
readonly READY_SECONDS=60 STOP_SECONDS=5

command=''
opt_nodes='' opt_port='' opt_dir='' wipe=no follow=no

parse() {
  while (($#)); do
    # Split --name=value into --name value.
    if [[ $1 == --*=* ]]; then
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
    fi
    case $1 in
      -h|--help) usage; exit 0 ;;
      --nodes|--port|--dir)
        [[ -n ${2:-} ]] || misuse "$1 needs a value"
        case $1 in
          --nodes) opt_nodes=$2 ;;
          --port) opt_port=$2 ;;
          --dir) opt_dir=$2 ;;
        esac
        shift 2 ;;
      --wipe) wipe=yes; shift ;;
      -f|--follow) follow=yes; shift ;;
      -*) misuse "unknown option $1" ;;
      *)
        [[ -z $command ]] || misuse "two commands: '$command' and '$1'. Give one"
        command=$1; shift ;;
    esac
  done

  case $command in
    start|stop|status|logs|dir|install|classpath|java) ;;
    help) usage; exit 0 ;;
    '') misuse 'a command is required: start, stop, status, logs, dir, install, classpath or java' ;;
    *) misuse "unknown command '$command'" ;;
  esac
  [[ $opt_nodes =~ ^(|1|3)$ ]] || misuse "--nodes must be 1 or 3, not '$opt_nodes'"
  # No leading zeros: bash would read such a number as octal.
  [[ $opt_port =~ ^(|0|[1-9][0-9]{0,4})$ ]] || misuse "--port must be a number from 0 to 65535 without leading zeros, not '$opt_port'"
  if [[ $command != start && -n $opt_nodes$opt_port ]]; then
    misuse "--nodes and --port are flags of start. $command takes them from the directory"
  fi
  [[ $wipe == no || $command == stop ]] || misuse '--wipe is a flag of stop'
  [[ $follow == no || $command == logs ]] || misuse '-f is a flag of logs'
  case ${FLAKED_ZK_FROM:=} in
    ''|installed|apt|unpacked|docker) ;;
    *) misuse "FLAKED_ZK_FROM must be installed, apt, unpacked or docker, not '$FLAKED_ZK_FROM'" ;;
  esac

  dir=${opt_dir:-${TMPDIR:-/tmp}/flaked-zk-$UID}
  # Everybody may write to the parent of the default directory, so refuse a link there.
  [[ -n $opt_dir || ! -L $dir ]] || die "$dir is a link. Choose another directory with --dir"
  # pid_of recognises our processes by this path, so it must be canonical.
  dir=$(realpath -m -- "$dir")
  cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/flaked/zookeeper
}

# ------------------------------------------------- finding ZooKeeper and Java

# The jars that a server needs. The manifest of zookeeper.jar names more.
readonly PACKAGES=(libzookeeper-java libdropwizard-metrics-java libsnappy-java libslf4j-java)
readonly JARS=(zookeeper zookeeper-jute metrics-core snappy-java slf4j-api slf4j-simple)

classpath='' java=''

from() { [[ -z $FLAKED_ZK_FROM || $FLAKED_ZK_FROM == "$1" ]]; }

# quietly runs a command and hides its output. It shows the last lines if the command fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" </dev/null >"$log" 2>&1 || status=$?
  ((status == 0)) || tail -n 15 "$log" >&2
  rm -f "$log"
  return "$status"
}

silently() { "$@" </dev/null >/dev/null 2>&1; }

look_installed() {
  local jars=/usr/share/java j
  if [[ -z $classpath && -r $jars/zookeeper.jar && -r $jars/slf4j-simple.jar ]]; then
    classpath=$jars/zookeeper.jar:$jars/slf4j-simple.jar # the manifest names the rest
  fi
  if [[ -z $java ]]; then
    for j in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
      /usr/lib/jvm/default-java/bin/java; do
      if [[ -n $j && -x $j ]]; then java=$j; break; fi
    done
  fi
}

apt_install() {
  local missing=()
  [[ -n $classpath ]] || missing+=(libzookeeper-java)
  [[ -n $java ]] || missing+=(default-jre-headless)
  say "installing ${missing[*]} with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  # The old package lists may suffice if they cannot be refreshed.
  quietly apt-get -o DPkg::Lock::Timeout=120 update || say 'apt-get update failed, trying with the existing package lists'
  quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${missing[@]}"
}

look_unpacked() {
  if [[ -z $classpath && -r $cache/jars/zookeeper.jar ]]; then
    classpath=$cache/jars/'*'
  fi
  if [[ -z $java ]]; then java=$(java_in "$cache/jre"); fi
}

# java_in prints the path of java in a JRE package unpacked under $1, or nothing. A link may
# give java a second path, so java_in prints only the first.
java_in() {
  local j
  for j in "$1"/usr/lib/jvm/*/bin/java; do
    if [[ -x $j ]]; then echo "$j"; return; fi
  done
}

# private_apt prints apt options for package lists of the user's own. They are needed where
# root never ran `apt-get update`, or only long ago.
private_apt() {
  printf '%s\n' -o "Dir::State::Lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt/cache"
}

# fetch ROOT PACKAGE... downloads packages and unpacks them under ROOT.
fetch() {
  local root=$1 options=() lists run package packages
  shift
  for lists in system private; do
    run=quietly
    if [[ $lists == system ]]; then
      run=silently # the second try shows its errors
    else
      mapfile -t options < <(private_apt)
      mkdir -p "$cache"/apt/{lists/partial,cache/archives/partial}
      quietly apt-get "${options[@]}" update || return 1
    fi
    packages=()
    for package; do
      if [[ $package == default-jre-headless ]]; then
        # The package holds only links. The program is in a package that it depends on.
        package=$(apt-cache "${options[@]}" depends default-jre-headless 2>/dev/null |
          awk '$1 == "Depends:" && $2 ~ /^openjdk-[0-9]+-jre-headless$/ { print $2; exit }') || true
        [[ -n $package ]] || continue 2
      fi
      packages+=("$package")
    done
    mkdir -p "$root/debs"
    if (cd "$root/debs" && "$run" apt-get "${options[@]}" download "${packages[@]}"); then
      for package in "$root"/debs/*.deb; do
        dpkg-deb -x "$package" "$root" || return 1
      done
      rm -r "$root/debs"
      return 0
    fi
  done
  return 1
}

unpack_jars() {
  local tmp=$1 j
  say "unpacking ${PACKAGES[*]} under $cache ..."
  fetch "$tmp/zk" "${PACKAGES[@]}" || return 1
  mkdir "$tmp/jars"
  for j in "${JARS[@]}"; do
    cp -L "$tmp/zk/usr/share/java/$j.jar" "$tmp/jars/" || return 1
  done
  rm -rf "$cache/jars"
  mv -T "$tmp/jars" "$cache/jars" # atomic: look_unpacked tests for only one file
}

unpack_jre() {
  local tmp=$1 link target
  say "unpacking a Java runtime under $cache ..."
  fetch "$tmp/jre" default-jre-headless || return 1
  # The package links to its configuration as /etc/java-...: make those links point to the
  # unpacked files.
  while IFS= read -r -d '' link; do
    target=$(readlink "$link")
    if [[ $target == /* && -e $tmp/jre$target ]]; then
      ln -srfn "$tmp/jre$target" "$link"
    fi
  done < <(find "$tmp/jre" -type l -print0)
  # Make the class archive that an installation would have made. Java starts faster with it.
  quietly "$(java_in "$tmp/jre")" -Xshare:dump || return 1
  rm -rf "$cache/jre"
  mv -T "$tmp/jre" "$cache/jre"
}

unpack() (
  mkdir -p "$cache" || exit 1
  exec 8>"$cache/lock"
  flock 8
  look_unpacked # another process may have unpacked it by now
  tmp=$(mktemp -d "$cache/tmp.XXXXXX")
  trap 'rm -rf "$tmp" "$cache/apt"' EXIT
  [[ -n $classpath ]] || unpack_jars "$tmp" || exit 1
  [[ -n $java ]] || unpack_jre "$tmp" || exit 1
)

# find_zookeeper sets classpath and java, installing what is missing.
find_zookeeper() {
  classpath=${FLAKED_ZK_CLASSPATH:-} java=${FLAKED_ZK_JAVA:-}
  [[ -z $java || -x $java ]] || die "FLAKED_ZK_JAVA: $java is not an executable file. Correct the path"

  if from installed; then look_installed; fi
  found && return
  if from apt && ((EUID == 0)) && have apt-get; then
    if apt_install; then look_installed; fi
  fi
  found && return
  if from unpacked; then
    look_unpacked
    found && return
    if have apt-get && have dpkg-deb && unpack; then look_unpacked; fi
  fi
  found
}

found() { [[ -n $classpath && -n $java ]]; }
have() { command -v "$1" >/dev/null; }

missing_message() {
  say 'ZooKeeper and Java not found, and installing them failed. One of these helps:'
  say '  Debian, Ubuntu:   apt-get install libzookeeper-java default-jre-headless'
  say "  elsewhere:        install Java, unpack a ZooKeeper release, and set FLAKED_ZK_CLASSPATH='/path/to/zookeeper/lib/*'"
  say '  Docker:           start the engine; the image zookeeper:3.9 is used'
  if [[ -n $FLAKED_ZK_FROM ]]; then say "  (FLAKED_ZK_FROM=$FLAKED_ZK_FROM: no other source was tried)"; fi
}

need_zookeeper() {
  find_zookeeper || { missing_message; exit 1; }
}

# ------------------------------------------------------------ ports and nodes

node_dir()      { printf '%s/node%d' "$dir" "$1"; }
client_port()   { echo $((port + $1 - 1)); }
quorum_port()   { echo $((port + QUORUM_OFFSET + $1 - 1)); }
election_port() { echo $((port + ELECTION_OFFSET + $1 - 1)); }

# node_ports prints every port node $1 listens on.
node_ports() {
  client_port "$1"
  if ((nodes > 1)); then
    quorum_port "$1"
    election_port "$1"
  fi
}

# listening succeeds if a process listens on port $1, on any address. It reads the kernel's
# tables: a server would notice a connection, and a stopped process would not answer one.
listening() {
  local hex
  printf -v hex '%04X' "$1"
  # 0A is TCP_LISTEN. Without IPv6 there is no tcp6, and cat fails.
  { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } |
    awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'
}

# ask prints node $1's answer to the four-letter word $2, or nothing.
ask() {
  local p
  p=$(client_port "$1")
  (
    exec 7<>"/dev/tcp/127.0.0.1/$p"
    printf '%s' "$2" >&7
    while IFS= read -r -t 1 -u 7 line; do printf '%s\n' "$line"; done
  ) 2>/dev/null || true
}

# mode prints standalone, leader or follower, or nothing while node $1 does not serve. It
# does not ask `ruok`, which a server answers long before it serves.
mode() { ask "$1" srvr | sed -n 's/^Mode: //p'; }

# answers_itself succeeds if node $1 itself answers on its port. Another ZooKeeper may have
# taken the port first, and node $1 is then about to fail.
answers_itself() { [[ $(ask "$1" conf) == *"dataDir=$(node_dir "$1")/data/"* ]]; }

# pid_of prints the pid of node $1, and fails if the node does not run. Pids are reused, so
# it checks that the process was started with the node's configuration file.
pid_of() {
  local node pid
  node=$(node_dir "$1")
  [[ -r $node/pid ]] || return 1
  pid=$(<"$node/pid")
  [[ $pid =~ ^[0-9]+$ && -r /proc/$pid/cmdline ]] || return 1
  tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -Fxq -- "$node/zoo.cfg" || return 1
  echo "$pid"
}

# known sets nodes and port to the values of the last start in this directory. It fails if
# there was none.
known() {
  local i cfg
  nodes=0 port=''
  for ((i = 1; i <= MAX_NODES; i++)); do
    if [[ -r $(node_dir "$i")/zoo.cfg ]]; then nodes=$i; fi
  done
  ((nodes > 0)) || return 1
  cfg=$(node_dir 1)/zoo.cfg
  port=$(awk -F= '$1 == "clientPort" { print $2 }' "$cfg")
  [[ $port =~ ^[0-9]+$ ]] || die "$cfg has no clientPort. 'stop --wipe' clears the directory"
}

running() {
  local i count=0
  for ((i = 1; i <= nodes; i++)); do
    if pid_of "$i" >/dev/null; then count=$((count + 1)); fi
  done
  echo "$count"
}

# lock ensures that only one zk-dev.sh works in the directory. `stop --wipe` may remove the
# lock file after we opened it and before we lock it: then lock starts again.
lock() {
  (umask 077 && mkdir -p -- "$dir")
  [[ -O $dir ]] || die "$dir belongs to another user. Choose another directory with --dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || die "another zk-dev.sh is still working in $dir. Try again"
  if [[ ! $dir/lock -ef /proc/self/fd/9 ]]; then lock; fi
}

# ----------------------------------------------------------------------- start

pick_port() {
  local try i p
  for ((try = 0; try < 200; try++)); do
    # Below the range from which the kernel takes ports for outgoing connections.
    port=$((15000 + RANDOM % 15000))
    for ((i = 1; i <= nodes; i++)); do
      for p in $(node_ports "$i"); do
        if listening "$p"; then continue 3; fi
      done
    done
    return
  done
  die 'no free ports found'
}

# check_ports dies if another process has a port of a node that does not run yet.
check_ports() {
  local i p who
  for ((i = 1; i <= nodes; i++)); do
    if pid_of "$i" >/dev/null; then continue; fi
    for p in $(node_ports "$i"); do
      if ! listening "$p"; then continue; fi
      who=$(ss -Hltnp "sport = :$p" 2>/dev/null | sed -n 's/.*users:((\([^)]*\)).*/ (\1)/p' | head -n 1) || who=''
      say "port $p is used by another process$who"
      if [[ $p == $(client_port "$i") && -n $(mode "$i") ]]; then
        say "a ZooKeeper answers there. To use that one: export FLAKED_ZK=127.0.0.1:$p"
      fi
      die 'Choose other ports with --port N, or free ones with --port 0'
    done
  done
}

configure() {
  local i j node
  for ((i = 1; i <= nodes; i++)); do
    node=$(node_dir "$i")
    mkdir -p "$node/data"
    {
      echo "# written by zk-dev.sh at each start"
      echo "tickTime=500" # allows sessions of 1 s
      echo "dataDir=$node/data"
      echo "clientPort=$(client_port "$i")"
      echo "clientPortAddress=127.0.0.1"
      echo "maxClientCnxns=0" # no limit: all clients have one address
      echo "admin.enableServer=false"
      echo "4lw.commands.whitelist=*"
      if ((nodes > 1)); then
        echo "initLimit=20"
        echo "syncLimit=10"
        echo "standaloneEnabled=false"
        for ((j = 1; j <= nodes; j++)); do
          echo "server.$j=127.0.0.1:$(quorum_port "$j"):$(election_port "$j")"
        done
      fi
    } >"$node/zoo.cfg.new"
    # Replace the file atomically, because `status` reads it without the lock.
    mv "$node/zoo.cfg.new" "$node/zoo.cfg"
    if ((nodes > 1)); then echo "$i" >"$node/data/myid"; fi
  done
}

container() { printf 'flaked-zk%s-%d' "${dir//[^[:alnum:]]/-}" "$1"; }

# launch starts node $1 in a session of its own, so that neither Ctrl-C nor the end of this
# terminal stops it.
launch() {
  local node run
  node=$(node_dir "$1")
  if [[ $use_docker == yes ]]; then
    # Docker runs in the foreground, so that pid, log and signals work as with Java: the
    # client passes SIGTERM on. The data directory keeps its path and owner. The servers of
    # an ensemble must reach each other on 127.0.0.1, so they use the host's network.
    run=(docker run --rm --name "$(container "$1")" --network host
      --user "$(id -u):$(id -g)" --volume "$node:$node"
      --env ZK_SERVER_HEAP=64 --env JMXDISABLE=true --env ZOO_LOG_DIR=/tmp
      --entrypoint zkServer.sh zookeeper:3.9 start-foreground "$node/zoo.cfg")
  else
    run=("$java" -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
      -Dzookeeper.jmx.log4j.disable=true
      -Dorg.slf4j.simpleLogger.showDateTime=true
      '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS'
      # At level info ZooKeeper logs a line for each `srvr` that mode sends.
      -Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn
      -cp "$classpath" org.apache.zookeeper.server.quorum.QuorumPeerMain "$node/zoo.cfg")
  fi
  if [[ -e $node/log ]]; then mv "$node/log" "$node/log.old"; fi
  # Close file descriptor 9, the lock: the server must not inherit it.
  (cd "$node" && exec setsid "${run[@]}") </dev/null >"$node/log" 2>&1 9>&- &
  echo $! >"$node/pid"
}

# await waits until every node serves. It fails after READY_SECONDS or if a node has ended,
# and leaves the reason and the ends of the logs in failure.
await() {
  local i m deadline=$((SECONDS + READY_SECONDS)) waiting
  while :; do
    waiting=()
    for ((i = 1; i <= nodes; i++)); do
      m=$(mode "$i")
      if [[ -z $m ]] || ! answers_itself "$i"; then waiting+=("$i"); fi
    done
    ((${#waiting[@]} > 0)) || return 0
    for i in "${waiting[@]}"; do
      # Do not use pid_of: between fork and exec it does not recognise the process yet.
      if ! kill -0 "$(<"$(node_dir "$i")/pid")" 2>/dev/null; then
        explain "server $i ended before it served" "$i"
        return 1
      fi
    done
    if ((SECONDS >= deadline)); then
      explain "server(s) ${waiting[*]} did not serve within $READY_SECONDS s" "${waiting[@]}"
      return 1
    fi
    sleep 0.05
  done
}

failure=''

# explain REASON NODE... puts the reason and the ends of the nodes' logs into failure. It
# does not print them, because cmd_start may try again with other ports.
explain() {
  local i log # printed without stack frames
  failure="$1"
  shift
  for i; do
    log=$(node_dir "$i")/log
    failure+=$'\n'"--- the end of $log"$'\n'"$(grep -v $'^\tat ' "$log" 2>/dev/null | tail -n 20 || true)"
  done
}

addresses() {
  local i list=''
  for ((i = 1; i <= nodes; i++)); do list+=",127.0.0.1:$(client_port "$i")"; done
  echo "${list#,}"
}

announce() {
  say "$1 (data and logs: $dir)"
  # On a terminal the export line is only printed, so it sets nothing.
  if [[ -t 1 ]]; then say "To set it in your shell: eval \"\$($0 start${opt_dir:+ --dir $opt_dir})\""; fi
  echo "export FLAKED_ZK=$(addresses)"
}

cmd_start() {
  local i try was_running started
  lock
  if known; then
    was_running=$(running)
    if [[ -n $opt_nodes && $opt_nodes != "$nodes" ]]; then
      die "$dir has the data of $nodes server(s), not $opt_nodes. Run 'stop --wipe' first, or use another --dir"
    fi
    if ((was_running > 0)) && [[ -n $opt_port && $opt_port != 0 && $opt_port != "$port" ]]; then
      die "already running on port $port, not $opt_port. Run 'stop' first, or use another --dir"
    fi
  else
    was_running=0
    nodes=${opt_nodes:-1}
    port=2181
  fi

  if ((was_running == nodes)); then
    await || { say "$failure"; die "it is running but not serving. Run 'stop', then 'start'"; }
    announce 'already running'
    return
  fi

  use_docker=no
  if ! find_zookeeper; then
    if ! from docker || ! have docker || ! docker info >/dev/null 2>&1; then
      missing_message
      exit 1
    fi
    use_docker=yes
    say 'using the Docker image zookeeper:3.9'
    docker image inspect zookeeper:3.9 >/dev/null 2>&1 || docker pull -q zookeeper:3.9 >&2
  fi

  for ((try = 1; ; try++)); do
    if ((was_running == 0)); then
      if [[ $opt_port == 0 ]]; then pick_port; else port=${opt_port:-$port}; fi
      if ((port + (nodes > 1 ? ELECTION_OFFSET + nodes - 1 : 0) > 65535)); then
        die "--port $port is too high for $nodes server(s). The highest port is 65535"
      fi
      check_ports
      configure
    else
      check_ports
    fi
    started=()
    for ((i = 1; i <= nodes; i++)); do
      if ! pid_of "$i" >/dev/null; then launch "$i"; started+=("$i"); fi
    done
    if await; then break; fi
    end "${started[@]}"
    # Another process took a port that was free a moment ago.
    if [[ $opt_port == 0 && $failure == *'Address already in use'* ]] && ((try < 5)); then continue; fi
    die "$failure"
  done
  announce "ready, $nodes server(s)"
}

# ------------------------------------------------------------- stop and others

# end NODE... ends nodes by SIGTERM, and by SIGKILL after STOP_SECONDS.
end() {
  local i pid deadline=$((SECONDS + STOP_SECONDS))
  for i; do
    if pid=$(pid_of "$i"); then
      # SIGCONT, because a process that SIGSTOP has stopped does not handle SIGTERM.
      { kill -TERM "$pid" && kill -CONT "$pid"; } 2>/dev/null || true
    fi
  done
  for i; do
    until gone "$i" || ((SECONDS >= deadline)); do sleep 0.02; done
    if pid=$(pid_of "$i"); then
      say "server $i (pid $pid) did not stop within $STOP_SECONDS s, killing it"
      # With Docker the pid is only that of the client: remove the container too.
      if is_docker "$i" "$pid"; then docker rm -f "$(container "$i")" >/dev/null 2>&1 || true; fi
      kill -KILL "$pid" 2>/dev/null || true
      until gone "$i"; do sleep 0.02; done
    fi
    rm -f "$(node_dir "$i")/pid"
  done
}

gone() { ! pid_of "$1" >/dev/null; }

is_docker() { tr '\0' '\n' 2>/dev/null <"/proc/$2/cmdline" | grep -Fxq -- "$(container "$1")"; }

cmd_stop() {
  local i count=0
  if [[ ! -d $dir ]]; then
    say "nothing was started in $dir"
    return
  fi
  lock
  # End all nodes that may run, even if the configuration is incomplete.
  nodes=$MAX_NODES
  count=$(running)
  end 1 2 3
  if [[ $wipe == no ]]; then
    say "stopped $count server(s). The data stays in $dir (stop --wipe removes it)"
    return
  fi
  # --dir may be any directory, even a home directory. So remove only known names, and the
  # directory itself only if it is empty.
  for ((i = 1; i <= MAX_NODES; i++)); do rm -rf "$(node_dir "$i")"; done
  rm -rf "$dir/state"
  rm -f "$dir/lock"
  rmdir "$dir" 2>/dev/null || true
  say "stopped $count server(s) and removed the data in $dir"
}

cmd_status() {
  local i pid m serving=0 alive=0
  if ! known; then
    say "nothing was started in $dir"
    exit 3
  fi
  printf '%-6s %-16s %-8s %-14s %s\n' SERVER ADDRESS PID MODE DIRECTORY
  for ((i = 1; i <= nodes; i++)); do
    m=stopped
    if pid=$(pid_of "$i"); then
      alive=$((alive + 1))
      m=$(mode "$i")
      if [[ -n $m ]]; then serving=$((serving + 1)); else m='not serving'; fi
    else
      pid=-
    fi
    printf '%-6s %-16s %-8s %-14s %s\n' "$i" "127.0.0.1:$(client_port "$i")" "$pid" "$m" "$(node_dir "$i")"
  done
  ((serving < nodes)) || exit 0
  ((alive > 0)) || exit 3
  exit 1
}

cmd_logs() {
  local i files=() options=(-v -n 50)
  known || die "nothing was started in $dir"
  for ((i = 1; i <= nodes; i++)); do
    if [[ -r $(node_dir "$i")/log ]]; then files+=("$(node_dir "$i")/log"); fi
  done
  ((${#files[@]} > 0)) || die "no logs in $dir"
  if [[ $follow == yes ]]; then options+=(-F); fi
  exec tail "${options[@]}" -- "${files[@]}"
}

cmd_install() {
  need_zookeeper
  printf 'export FLAKED_ZK_CLASSPATH=%q\n' "$classpath"
  printf 'export FLAKED_ZK_JAVA=%q\n' "$java"
}

parse "$@"
[[ -r /proc/self/cmdline ]] || die "Linux is required, for /proc. Elsewhere, run: docker compose up zk1 zk2 zk3"
case $command in
  start) cmd_start ;;
  stop) cmd_stop ;;
  status) cmd_status ;;
  logs) cmd_logs ;;
  dir) echo "$dir" ;;
  install) cmd_install ;;
  classpath) need_zookeeper; echo "$classpath" ;;
  java) need_zookeeper; echo "$java" ;;
esac
