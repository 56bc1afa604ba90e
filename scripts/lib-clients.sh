# shellcheck shell=bash
# What scripts/test-clients.sh and scripts/release.sh need of the languages of clients/. lib.sh must be read before.

# tools_of installs the tools of a language if it can, and reports whether they are there.
tools_of() {
  local packages=()
  case $1 in
    java)
      have javac || packages+=(openjdk-17-jdk-headless)
      have mvn || packages+=(maven)
      ;;
    python) { have python3 && python3 -c 'import ensurepip'; } 2>/dev/null || packages+=(python3 python3-venv) ;;
    node)
      have node || packages+=(nodejs)
      have npm || packages+=(npm)
      ;;
  esac
  ((${#packages[@]})) || return 0
  if ((EUID != 0)) || ! have apt-get; then
    say "install ${packages[*]} (on Debian: sudo apt-get install ${packages[*]})"
    return 1
  fi
  say "installing ${packages[*]} with apt-get ..."
  export DEBIAN_FRONTEND=noninteractive
  refresh_packages
  quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${packages[@]}"
}

# install_node_modules gets the packages of the lock file in the present directory, unless it has them.
install_node_modules() {
  cmp -s package-lock.json node_modules/.flaked-lock.json && return
  quietly npm ci --ignore-scripts --no-audit --no-fund
  cp package-lock.json node_modules/.flaked-lock.json
}
