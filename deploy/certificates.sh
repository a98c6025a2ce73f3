#!/bin/bash
# Makes the certificates by which the machines of a fleet know each other (mutual TLS), in a folder that only this user
# can read, and prints for each certificate whether it was made, renewed or kept. An existing certificate is kept if
# this authority issued it for exactly these names, its key is beside it, and it is valid for another week.
#   certificates.sh FOLDER coordinator HOST...    FOLDER/coordinator.pem and .key, for these names of its machine
#   certificates.sh FOLDER worker|client|operator|cache NAME...    FOLDER/NAME.pem and .key of each
# The first call makes the certificate authority, FOLDER/ca.pem and ca.key. Keep ca.key where no worker can read it:
# who has it can make any certificate. Roles are those of the trust domain "warploom" (WARPLOOM_TRUST_DOMAIN names another
# one), so the coordinator is started with --trust-domain warploom.
set -euo pipefail
umask 077

fail() {
  echo "certificates.sh: $*" >&2
  exit 1
}

[ $# -ge 3 ] || fail "usage: certificates.sh FOLDER coordinator|worker|client|operator|cache NAME..."
folder=$1 role=$2
shift 2
days=${WARPLOOM_CERTIFICATE_DAYS:-90} domain=${WARPLOOM_TRUST_DOMAIN:-warploom}
case $role in
  coordinator | worker | client | operator | cache) ;;
  *) fail "\"$role\": expected coordinator, worker, client, operator or cache" ;;
esac
command -v openssl >/dev/null || fail "openssl is missing: apt-get install openssl"
[[ $days =~ ^[1-9][0-9]*$ ]] || fail "WARPLOOM_CERTIFICATE_DAYS=$days: expected a number of days"
[[ $domain =~ ^[a-z0-9._-]+$ ]] || fail "WARPLOOM_TRUST_DOMAIN=$domain: expected lower-case letters, digits, '.', '_' and '-'"
for name in "$@"; do
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || fail "\"$name\": expected letters, digits, '.', '_' and '-'"
  [ "$name" != ca ] || [ "$role" = coordinator ] || fail "\"ca\": the files of that name are the authority's; choose another"
done
mkdir -p "$folder"
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Runs openssl, and prints its messages only if it fails.
ssl() {
  openssl "$@" 2>"$work/said" || fail "openssl $1 failed: $(cat "$work/said")"
}

if [ ! -e "$folder/ca.pem" ]; then
  ssl req -x509 "${key[@]}" -keyout "$folder/ca.key" -out "$work/ca" -days 3650 -subj "/CN=Warploom CA"
  mv "$work/ca" "$folder/ca.pem"
  echo "made $folder/ca.pem, the authority"
fi
[ -e "$folder/ca.key" ] || fail "$folder/ca.key is missing: certificates are made where the key of $folder/ca.pem is kept"
openssl x509 -in "$folder/ca.pem" -noout -checkend 604800 >/dev/null 2>&1 ||
  fail "$folder/ca.pem expires within a week, or is no certificate: move the folder away and make all certificates anew"

# Prints the subject alternative names in the certificate file $1: "DNS:a,IP:10.0.0.1".
names_in() {
  openssl x509 -in "$1" -noout -ext subjectAltName 2>/dev/null | tail -n +2 | sed 's/IP Address:/IP:/g; s/[[:space:]]//g'
}

# Prints why the existing certificate file $1 cannot be kept for the names $2; prints nothing if it can.
lack() {
  local pem=$1 names=$2
  openssl x509 -in "$pem" -noout >/dev/null 2>&1 || { echo "it is no certificate"; return; }
  [ "$(names_in "$pem")" = "$names" ] || { echo "it was for $(names_in "$pem")"; return; }
  openssl x509 -in "$pem" -noout -checkend 604800 >/dev/null || { echo "it expires within a week"; return; }
  openssl verify -CAfile "$folder/ca.pem" "$pem" >/dev/null 2>&1 || { echo "another authority made it"; return; }
  [ "$(openssl pkey -in "${pem%.pem}.key" -pubout 2>/dev/null)" = "$(openssl x509 -in "$pem" -noout -pubkey)" ] ||
    echo "its key is missing or another's"
}

# make NAME ALTERNATIVE_NAMES: makes, renews or keeps FOLDER/NAME.pem and its key, FOLDER/NAME.key.
make() {
  local name=$1 names=$2 pem=$folder/$1.pem before='' why=''
  if [ -e "$pem" ]; then
    why=$(lack "$pem" "$names")
    before=$(names_in "$pem")
    # A renewal may change the host names of the coordinator's certificate, but not the owner of any other certificate.
    [ "$role" = coordinator ] && [[ $before != *URI:* ]] || [ -z "$before" ] || [ "$before" = "$names" ] ||
      fail "$pem is of $before: choose another name, or remove it first"
    if [ -z "$why" ]; then
      echo "kept $pem, for $names, $(openssl x509 -in "$pem" -noout -enddate | sed 's/notAfter=/valid until /')"
      return 0
    fi
  fi
  ssl req "${key[@]}" -keyout "$work/key" -out "$work/csr" -subj "/CN=$name"
  echo "subjectAltName=$names" >"$work/names"
  ssl x509 -req -in "$work/csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days "$days" -extfile "$work/names" -out "$work/pem"
  mv "$work/key" "$folder/$name.key"
  mv "$work/pem" "$pem"
  if [ -n "$why" ]; then echo "renewed $pem, for $names: $why"; else echo "made $pem, for $names"; fi
}

if [ "$role" = coordinator ]; then
  names=
  for host in "$@"; do
    [[ $host =~ ^[0-9.]+$ ]] && names+=",IP:$host" || names+=",DNS:$host"
  done
  make coordinator "${names#,}"
else
  for name in "$@"; do make "$name" "URI:spiffe://$domain/warploom/$role/$name"; done
fi
