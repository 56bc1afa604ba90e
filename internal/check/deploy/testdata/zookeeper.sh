#!/bin/sh
#
# The entry point of the stand-in for the image zookeeper:3.9: it takes some variables of the
# published image, and runs Debian's ZooKeeper, or that of FLAKED_ZK_CLASSPATH.
set -eu

conf=/tmp/zoo.cfg
{
  echo "dataDir=/data"
  echo "dataLogDir=/datalog"
  echo "clientPort=2181"
  echo "tickTime=${ZOO_TICK_TIME:-2000}"
  echo "initLimit=${ZOO_INIT_LIMIT:-5}"
  echo "syncLimit=${ZOO_SYNC_LIMIT:-2}"
  echo "autopurge.snapRetainCount=3"
  echo "autopurge.purgeInterval=${ZOO_AUTOPURGE_PURGEINTERVAL:-0}"
  echo "standaloneEnabled=${ZOO_STANDALONE_ENABLED:-true}"
  echo "admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}"
  echo "4lw.commands.whitelist=${ZOO_4LW_COMMANDS_WHITELIST:-srvr}"
  for line in ${ZOO_SERVERS:-} ${ZOO_CFG_EXTRA:-}; do echo "$line"; done
} >"$conf"
[ -e /data/myid ] || echo "${ZOO_MY_ID:-1}" >/data/myid

j=/usr/share/java
debian=$j/zookeeper.jar:$j/zookeeper-jute.jar:$j/metrics-core.jar:$j/snappy-java.jar:$j/slf4j-api.jar:$j/slf4j-simple.jar
exec java -Xmx128m -Dzookeeper.4lw.commands.whitelist="${ZOO_4LW_COMMANDS_WHITELIST:-srvr}" \
  -cp "${FLAKED_ZK_CLASSPATH:-$debian}" org.apache.zookeeper.server.quorum.QuorumPeerMain "$conf"
