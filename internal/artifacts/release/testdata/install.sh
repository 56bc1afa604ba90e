#!/usr/bin/env bash
#
# install.sh installs a package of flaked, runs flaked, and removes the package. It works in
# a temporary copy of this machine: an overlay of the root directory, in a mount namespace
# that ends with the script. Run it as root:
#
#   unshare --mount --pid --fork --kill-child install.sh flaked.deb VERSION
set -euo pipefail
deb=$1 version=$2

command -v systemd-sysusers >/dev/null || { echo 'FAILED: systemd-sysusers not found. The package depends on it: apt-get install systemd'; exit 1; }

mount --make-rprivate /
copy=$(mktemp -d)
mount -t tmpfs -o size=512m tmpfs "$copy"
mkdir "$copy/upper" "$copy/work" "$copy/root"
mount -t overlay -o "lowerdir=/,upperdir=$copy/upper,workdir=$copy/work" overlay "$copy/root"
mount -t proc proc "$copy/root/proc"
mount --bind /dev "$copy/root/dev"
cp "$deb" "$copy/root/tmp/flaked.deb"
# The end of the namespace would remove the mount, but not its directory.
trap 'umount -l "$copy" && rmdir "$copy"' EXIT

chroot "$copy/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -s "$version" <<'IN_THE_COPY'
set -euo pipefail
version=$1
fail() { echo "FAILED: $*"; exit 1; }
cd /tmp

echo '== install'
dpkg -s flaked >/dev/null 2>&1 && fail 'flaked is already installed on this machine, so this would not be a first installation'
dpkg -i flaked.deb || fail 'dpkg -i'
getent passwd flaked || fail 'the user flaked was not created'
[[ $(flaked version | head -n 1) == "flaked $version" ]] || fail "wrong version: $(flaked version)"
[[ -z $(dpkg -V flaked) ]] || fail "installed files differ from the package: $(dpkg -V flaked)"
for file in LICENSE THIRD-PARTY-NOTICES CHANGELOG.md README.md docs/operate.md; do
  [[ -s /usr/share/doc/flaked/$file ]] || grep -qs '^path-exclude.*/usr/share/doc' /etc/dpkg/dpkg.cfg.d/* || fail "/usr/share/doc/flaked/$file is missing"
done
# man finds the manual page, and systemd accepts the unit.
! command -v man >/dev/null || man -w flaked-serve || fail 'manual page not found'
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify flaked.service || fail 'systemd-analyze verify flaked.service'
fi

echo '== run, as the unit says'
start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/flaked.service)
as_flaked=(setpriv --reuid=flaked --regid=flaked --clear-groups env -i FLAKED_STATE_DIR=/var/lib/flaked)
install -d -o flaked -g flaked -m 700 /var/lib/flaked # StateDirectory=
status=0
# shellcheck disable=SC2086 # words
"${as_flaked[@]}" $start 2>refused || status=$?
[[ $status == 2 ]] && grep -- '--zk is required' refused || fail "without settings: exit code $status, $(cat refused)"
cat >>/etc/flaked.yaml <<'SETTINGS'
listen: unix:/var/lib/flaked/flaked.sock
admin: off
SETTINGS
# shellcheck disable=SC2086
"${as_flaked[@]}" $start --dev 2>log &
node=$!
export FLAKED_ADDR=unix:/var/lib/flaked/flaked.sock
for ((i = 0; ; i++)); do
  flaked healthcheck && break
  kill -0 $node 2>/dev/null || fail "the node ended: $(cat log)"
  ((i < 150)) || fail "the node is not ready: $(cat log)"
  sleep 0.2
done
[[ $(flaked get 5 | sort -n -u | wc -l) == 5 ]] || fail 'flaked get 5 did not print five different IDs'
kill $node
wait $node || fail "the node did not stop cleanly: $(cat log)"

echo '== install once more'
dpkg -i flaked.deb || fail 'dpkg -i'
grep '^listen:' /etc/flaked.yaml || fail 'the settings were removed'

echo '== remove'
dpkg -r flaked || fail 'dpkg -r'
[[ ! -e /usr/bin/flaked && -e /etc/flaked.yaml && -d /var/lib/flaked ]] || fail 'removed too much, or too little'
echo '== purge'
dpkg -P flaked || fail 'dpkg -P'
[[ ! -e /etc/flaked.yaml && ! -e /var/lib/flaked ]] || fail 'purge left files'
echo 'ALL WELL'
IN_THE_COPY
