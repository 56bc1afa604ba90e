#!/usr/bin/env bash
#
# release.sh makes the files of a release in a directory: for each platform an archive and an SBOM, and for
# Linux a Debian package and an image. Then the Helm chart and SHA256SUMS. `make release` calls it, on Linux:
#
#   scripts/release.sh VERSION EPOCH DIR [OS/ARCH | clients]...
#
# `clients` are the packages for Java, Python and Node. EPOCH is the time of all files, in Unix seconds: the time
# of the commit. The same commit and the same version of Go give the same bytes on every machine;
# scripts/check-release.sh checks it.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOWORK=off GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0
# With -trimpath the tools are the same program everywhere, and an SBOM has its maker's checksum.
export GOFLAGS=-trimpath

nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=lib.sh
. scripts/lib.sh
# shellcheck source-path=SCRIPTDIR source=lib-clients.sh
. scripts/lib-clients.sh
version=$1 out=$3
export SOURCE_DATE_EPOCH=$2
shift 3
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
now=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# The version as Helm, npm and Maven want it. Without a tag it is below all others.
number=${version#v}
[[ $number =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || number=0.0.0-g$number

# python_version prints the number as pip wants it: commits after a version follow a plus sign.
python_version() {
  sed -E 's/-([0-9]+)-(g[0-9a-f]+)/+\1.\2/; s/^0\.0\.0-/0.0.0+/
    s/^([^+]*)-dirty$/\1+dirty/; s/-dirty$/.dirty/; s/-//' <<<"$number"
}

# plain_modes gives copies the modes that they have on a machine with umask 022.
plain_modes() { chmod -R u+w,go=rX "$@"; }

# pack DIR OWNER NAME... prints a tar of the names in DIR, without what differs between machines.
pack() {
  local dir=$1 owner=$2
  shift 2
  tar -C "$dir" --sort=name --format=ustar --owner="$owner" --group="$owner" --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" -c "$@"
}

# deb_version prints the package's version for one of `git describe`. dpkg sorts release candidates
# before their version, later commits after it, and versions without a tag before all others.
deb_version() {
  if [[ $version =~ ^v?[0-9]+(\.[0-9]+)+ ]]; then
    sed -E 's/^v//; s/-dirty$/+dirty/; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/-/~/' <<<"$version"
  else
    echo "0~$(tr -c 'A-Za-z0-9.+~\n' . <<<"$version")"
  fi
}

# notices prints the licences of Go and of all modules that the program for a platform links.
notices() {
  local module root file found line
  printf -v line '%80s' ''
  printf 'The program flaked contains the software that this file lists. The licence of each part\nfollows its name. The licence of flaked itself is in the file LICENSE.\n'
  {
    printf "Go's standard library, %s\t%s\n" "$(go env GOVERSION)" "$(go env GOROOT)"
    GOOS=$1 GOARCH=$2 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}' ./cmd/flaked | sort -u
  } | while IFS=$'\t' read -r module root; do
    printf '\n%s\n%s\n' "${line// /=}" "$module"
    found=no
    # Some modules have code of others, with its licence, in a directory of its own.
    while IFS= read -r file; do
      printf '\n---------- %s\n\n' "${file#"$root/"}"
      cat "$file"
      found=yes
    done < <(find "$root" -maxdepth "$([[ $root == "$(go env GOROOT)" ]] && echo 1 || echo 4)" -type f \
      -regextype posix-extended -iregex '.*/(licen[cs]e|copying|notice|copyright|patents)([-._][^/]*)?' ! -name '*.go' | sort)
    [[ $found == yes ]] || { echo "release: no licence file in $root. A release must not contain a module without a licence." >&2; exit 1; }
  done
}

# source_links DIR makes the links of the documents in DIR to files that are not there lead to the sources.
source_links() {
  local commit file link target
  commit=$(sed -E 's/-dirty$//; s/.*-g([0-9a-f]+)$/\1/' <<<"$version") # of `git describe`
  (cd "$1" && find . -name '*.md' -printf '%P\n') | while read -r file; do
    { grep -oE '\]\([^):#]+[)#]' "$1/$file" || true; } | sort -u | while read -r link; do
      link=${link#](}
      target=$(cd "$1" && realpath -m --relative-to=. "$(dirname "$file")/${link%?}")
      [[ -e $1/$target ]] || sed -i "s|]($link|](https://github.com/flaked/flaked/blob/$commit/$target${link: -1}|g" "$1/$file"
    done
  done
}

platform() {
  local os=$1 arch=$2 name dir
  name=flaked_${version#v}_${os}_$arch
  dir=$stage/$name
  mkdir "$dir"
  GOOS=$os GOARCH=$arch go build -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$dir/flaked" ./cmd/flaked
  mkdir "$dir/doc"
  cp ./*.md LICENSE "$dir/doc"
  find docs -type f \( -name '*.md' -o -name '*.svg' \) -exec cp --parents --no-preserve=mode -t "$dir/doc" {} +
  cp --parents -R --no-preserve=mode deploy/prometheus deploy/grafana "$dir/doc"
  source_links "$dir/doc"
  notices "$os" "$arch" >"$dir/doc/THIRD-PARTY-NOTICES"
  plain_modes "$dir"
  go run "$cyclonedx" bin -json -noserial -notimestamp -std -output-version 1.6 -version "$version" "$dir/flaked" >"$out/$name.cdx.json" 2>"$stage/log" ||
    { cat "$stage/log" >&2; return 1; }
  if [[ $os == linux ]]; then
    # The package's unit starts /usr/bin/flaked. Its head must not explain an installation without a package.
    # shellcheck disable=SC2016 # the backquotes are for readers
    { printf '# Change this unit with `systemctl edit flaked`. The state directory is always\n# /var/lib/flaked: state-dir in /etc/flaked.yaml is ignored.\n\n'
      sed -n '/^\[Unit\]$/,$ s#/usr/local/bin/#/usr/bin/#; /^\[Unit\]$/,$ p' deploy/systemd/flaked.service; } >"$stage/flaked.service"
    STAGE=$stage TREE=$dir ARCH=$arch VERSION=$(deb_version) go run "$nfpm" package --config deploy/debian/nfpm.yaml --packager deb \
      --target "$out/flaked_$(deb_version)_$arch.deb" >"$stage/log" 2>&1 || { cat "$stage/log" >&2; return 1; }
    image "$name" "$arch"
    cp -R deploy/systemd "$dir/doc/deploy"
  fi
  cp -R "$dir/doc/." "$dir"
  rm -r "$dir/doc"
  plain_modes "$dir"
  pack "$stage" 0 "$name" | gzip -9 -n >"$out/$name.tar.gz"
}

# image makes an archive for `docker load`, without a container engine. The image is the Dockerfile's, and has
# the licences, too. A test compares the settings of both.
image() {
  local name=$1 arch=$2 files=$stage/$1.image layer config
  mkdir -p "$files" "$files.root"/{usr/local/bin,usr/share/doc/flaked,var/lib/flaked,run/flaked,tmp}
  cp "$stage/$name/flaked" "$files.root/usr/local/bin"
  cp LICENSE "$stage/$name/doc/THIRD-PARTY-NOTICES" "$files.root/usr/share/doc/flaked"
  plain_modes "$files.root"
  chmod 700 "$files.root/var/lib/flaked"
  pack "$files.root" 65532 run tmp usr var >"$files/layer.tar"
  layer=$(sha256sum <"$files/layer.tar")
  gzip -9 -n "$files/layer.tar"
  cat >"$files/config" <<JSON
{"architecture": "$arch", "os": "linux", "created": "$now", "config": {
  "User": "65532:65532",
  "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "FLAKED_STATE_DIR=/var/lib/flaked"],
  "ExposedPorts": {"7609/tcp": {}, "7610/tcp": {}}, "StopSignal": "SIGTERM",
  "Healthcheck": {"Test": ["CMD", "/usr/local/bin/flaked", "healthcheck"],
    "Interval": 5000000000, "Timeout": 3000000000, "StartPeriod": 60000000000},
  "Entrypoint": ["/usr/local/bin/flaked"], "Cmd": ["serve"],
  "Labels": {"org.opencontainers.image.licenses": "Apache-2.0"}},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:${layer%% *}"]},
 "history": [{"created": "$now", "created_by": "make release"}]}
JSON
  config=$(sha256sum <"$files/config")
  config=${config%% *}.json
  mv "$files/config" "$files/$config"
  printf '[{"Config": "%s", "RepoTags": ["flaked:%s"], "Layers": ["layer.tar.gz"]}]\n' "$config" "$version" \
    >"$files/manifest.json"
  pack "$files" 0 manifest.json "$config" layer.tar.gz >"$out/${name}_image.tar"
}

# The clients are built in a copy, without what other builds have left. The copy gets the release's version.
clients() {
  local built=$stage/tree/clients module
  mkdir "$stage/tree"
  tar --exclude=target --exclude=node_modules --exclude=dist --exclude=__pycache__ --exclude='*.egg-info' --exclude='.?*' \
    -c LICENSE clients | tar -C "$stage/tree" -x
  for module in "$built"/java/*/src/main; do
    mkdir -p "$module/resources/META-INF"
    cp LICENSE "$module/resources/META-INF"
  done
  cp LICENSE "$built/python"
  plain_modes "$stage/tree"
  if tools_of java; then
    (cd "$built/java" && quietly mvn -B -ntp -DskipTests -Dspotless.check.skip -Drevision="$number" \
      -Dproject.build.outputTimestamp="$now" package)
    find "$built/java" -path '*/target/*.jar' ! -path '*/flaked-test/*' ! -name 'original-*' ! -name '*-tests.jar' -exec cp -t "$out" {} +
  else
    say 'NOT BUILT: the jars, because tools are missing'
  fi
  if tools_of python; then
    sed -i "s/^__version__ = .*/__version__ = \"$(python_version)\"/" "$built/python/src/flaked/__init__.py"
    python3 -m venv "$stage/venv"
    quietly "$stage/venv/bin/pip" install --disable-pip-version-check build==1.3.0
    cp LICENSE "$built/python" # where hatchling looks for it
    quietly "$stage/venv/bin/python" -m build --outdir "$out" "$built/python"
  else
    say 'NOT BUILT: the wheel, because tools are missing'
  fi
  if tools_of node; then
    # With a name of its own: the chart is flaked-VERSION.tgz, too.
    (cd "$built/node" && install_node_modules &&
      quietly npm version --no-git-tag-version --allow-same-version "$number" &&
      quietly npm pack --pack-destination .. && mv ../flaked-*.tgz "$out/flaked-node-$number.tgz")
  else
    say "NOT BUILT: npm's package, because tools are missing"
  fi
}

# chart makes the archive that `helm package` makes, which has the current time in it.
chart() {
  mkdir "$stage/chart"
  cp -RL deploy/helm/flaked "$stage/chart" # the alerts are a link
  cp LICENSE "$stage/chart/flaked"
  sed -i "s/^version: .*/version: $number/; s/^appVersion: .*/appVersion: \"$version\"/" \
    "$stage/chart/flaked/Chart.yaml"
  plain_modes "$stage/chart"
  pack "$stage/chart" 0 flaked | gzip -9 -n >"$out/flaked-$number.tgz"
}

chart
for target; do
  if [[ $target == clients ]]; then clients; else platform "${target%/*}" "${target#*/}"; fi
done
(cd "$out" && sha256sum -- * >"$stage/sums" && cp "$stage/sums" SHA256SUMS && ls)
