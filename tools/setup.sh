#!/bin/bash
# Installs the packages that Warploom needs on this machine. It is fast when nothing is missing, so every make target
# can call it.
#   tools/setup.sh build      the Debian packages of tools/packages.txt (as root, or as a user who may sudo)
#   tools/setup.sh packages   as build, and the Debian packages of tools/packages-test.txt
#   tools/setup.sh python     as packages, and the Python environment build/venv with tools/requirements.txt
#   tools/setup.sh cluster    as python, and the Debian packages of tools/packages-cluster.txt
#   tools/setup.sh site       as packages, and the Python environment build/venv-site with tools/requirements-site.txt
#   tools/setup.sh wheel      as packages, and the Python environment build/venv-wheel with tools/requirements-wheel.txt
#   tools/setup.sh peers      as python, and build/venv-peers with tools/requirements-peers.txt (several GB)
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "setup: $*" >&2
  exit 1
}

# missing_packages: reads lines with alternative packages, such as "A | B", and prints those lines of which no package is installed.
missing_packages() {
  local wanted installed
  wanted=$(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' | sort -u)
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
  awk -F ' *[|] *' 'NR == FNR { have[$0]; next } { for (i = 1; i <= NF; ++i) if ($i in have) next; print }' \
    <(echo "$installed") <(echo "$wanted")
}

# first_available LINE: prints the first package of "A | B" that apt knows; if it knows none, A, so that apt reports it.
first_available() {
  local name
  for name in ${1//|/ }; do
    if apt-cache show "$name" >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
  echo "${1%% *}"
}

# install_packages LISTS...: installs those packages of the files LISTS that are missing.
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup: no apt-get here; install what $* list under your system's names" >&2
    return
  fi
  local line lines packages=() as_root=()
  mapfile -t lines < <(cat "$@" | missing_packages)
  [ "${#lines[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "need root or sudo for: apt-get install ${lines[*]}"
    as_root=(sudo)
  fi
  # `env` follows sudo because sudo drops the caller's environment.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
  for line in "${lines[@]}"; do packages+=("$(first_available "$line")"); done
  echo "setup: installing ${packages[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
}

# make_venv FOLDER REQUIREMENTS: makes a Python environment with the packages of the file REQUIREMENTS, unless FOLDER is one already that
# was made from the same requirements.
make_venv() {
  local folder=$1 requirements=$2
  if cmp -s "$requirements" "$folder/.installed" && "$folder/bin/python" -c '' 2>/dev/null; then
    return 0
  fi
  echo "setup: Python environment $folder from $requirements"
  # Debian's interpreter is used even if PATH has another python3 first.
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" -m venv --clear "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$folder/.installed"
}

need_disk() {
  local gigabytes=$1 free
  free=$(df --output=avail -BG . | tail -1 | tr -dc '0-9')
  [ "$free" -ge "$gigabytes" ] || fail "the peers need $gigabytes GB of disk here, $free GB are free"
}

mkdir -p build
for_building=(tools/packages.txt)
for_tests=(tools/packages.txt tools/packages-test.txt)
case "${1:-packages}" in
  build) install_packages "${for_building[@]}" ;;
  packages) install_packages "${for_tests[@]}" ;;
  python)
    install_packages "${for_tests[@]}"
    make_venv build/venv tools/requirements.txt
    ;;
  cluster)
    install_packages "${for_tests[@]}" tools/packages-cluster.txt
    make_venv build/venv tools/requirements.txt
    ;;
  peers)
    install_packages "${for_tests[@]}"
    make_venv build/venv tools/requirements.txt
    cmp -s tools/requirements-peers.txt build/venv-peers/.installed || need_disk 15
    make_venv build/venv-peers tools/requirements-peers.txt
    ;;
  site | wheel)
    install_packages "${for_tests[@]}"
    make_venv "build/venv-$1" "tools/requirements-$1.txt"
    ;;
  *) fail "unknown part '$1': expected build, packages, python, cluster, peers, site or wheel" ;;
esac
