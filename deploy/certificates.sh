#!/bin/bash
# Makes the certificates by which the machines of a fleet know each other (mutual TLS), in a folder that only this user
# can read. What is there already stays, unless it expires within a week.
#   certificates.sh FOLDER coordinator HOST...    FOLDER/coordinator.pem and .key, for these names of its machine
#   certificates.sh FOLDER worker|client|operator|cache NAME...    FOLDER/NAME.pem and .key of each
# The first call makes the certificate authority, FOLDER/ca.pem and ca.key. Keep ca.key where no worker can read it:
# who has it can make any certificate.
set -euo pipefail
umask 077

fail() {
  echo "certificates.sh: $*" >&2
  exit 1
}

[ $# -ge 3 ] || fail "usage: certificates.sh FOLDER coordinator|worker|client|operator|cache NAME..."
folder=$1 role=$2
shift 2
days=${WARPLOOM_CERTIFICATE_DAYS:-90}
command -v openssl >/dev/null || fail "openssl is missing: apt-get install openssl"
for name in "$@"; do
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || fail "\"$name\": expected letters, digits, '.', '_' and '-'"
done
mkdir -p "$folder"
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

if [ ! -e "$folder/ca.pem" ]; then
  openssl req -x509 "${key[@]}" -keyout "$folder/ca.key" -out "$folder/ca.pem.new" -days 3650 -subj "/CN=Warploom CA" 2>/dev/null
  mv "$folder/ca.pem.new" "$folder/ca.pem"
fi

# make NAME ALTERNATIVE_NAMES
make() {
  local name=$1 names=$2 request
  openssl x509 -in "$folder/$name.pem" -noout -checkend 604800 >/dev/null 2>&1 && return 0
  request=$(mktemp -d)
  openssl req "${key[@]}" -keyout "$folder/$name.key" -out "$request/csr" -subj "/CN=$name" 2>/dev/null
  echo "subjectAltName=$names" >"$request/names"
  openssl x509 -req -in "$request/csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days "$days" -extfile "$request/names" -out "$request/pem" 2>/dev/null
  rm -f "$folder/$name.pem"
  cp "$request/pem" "$folder/$name.pem"
  rm -r "$request"
}

case $role in
  coordinator)
    names=
    for host in "$@"; do
      [[ $host =~ ^[0-9.]+$ ]] && names+=",IP:$host" || names+=",DNS:$host"
    done
    make coordinator "${names#,}"
    ;;
  worker | client | operator | cache)
    for name in "$@"; do make "$name" "URI:spiffe://warploom/warploom/$role/$name"; done
    ;;
  *) fail "\"$role\": expected coordinator, worker, client, operator or cache" ;;
esac
