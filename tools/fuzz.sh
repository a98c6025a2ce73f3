#!/bin/bash
# Runs every fuzz target of the fuzz preset for SECONDS each, as many at a time as there are processors. A crash leaves
# its input in build/fuzz/crashes and fails. The output of the targets is in build/fuzz/log.
#   tools/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS}
shopt -s nullglob
targets=(build/fuzz/bin/fuzz_*)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target in build/fuzz/bin: build the fuzz preset first" >&2; exit 1; }
mkdir -p build/fuzz/crashes build/fuzz/log

# fuzz_one TARGET SECONDS: runs one fuzz target.
fuzz_one() {
  local name corpus seeds
  name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  seeds=tests/fuzz/seeds/${name#fuzz_}
  mkdir -p "$corpus"
  [ -d "$seeds" ] || seeds=
  if "$1" -max_total_time="$2" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$name-" "$corpus" ${seeds:+"$seeds"} >"build/fuzz/log/$name" 2>&1; then
    echo "fuzz: $name for $2 s: no finding, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/log/$name") inputs"
  else
    echo "fuzz: $name failed; the end of build/fuzz/log/$name:" >&2
    tail -n 40 "build/fuzz/log/$name" >&2
    return 1
  fi
}
export -f fuzz_one
printf '%s\0' "${targets[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'fuzz_one "$1" "$2"' _ {} "$seconds"
