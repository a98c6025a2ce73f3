#!/bin/bash
# Runs every fuzz target of the fuzz preset, or only the named ones (such as wire, requests): each for SECONDS or, if RUNS is not empty, for
# RUNS inputs. As many run at a time as there are processors. A crash leaves its input in build/fuzz/crashes, and the script fails. The
# output of the targets is in build/fuzz/log.
#   tools/fuzz.sh SECONDS [RUNS [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS [RUNS [TARGET...]]}
runs=${2:-}
shopt -s nullglob
targets=("${@:3}")
targets=("${targets[@]/#/build/fuzz/bin/fuzz_}")
[ ${#targets[@]} -gt 0 ] || targets=(build/fuzz/bin/fuzz_*)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target in build/fuzz/bin: build the fuzz preset first" >&2; exit 1; }
for target in "${targets[@]}"; do
  [ -x "$target" ] || { echo "fuzz: there is no target ${target#build/fuzz/bin/fuzz_}; there are:" build/fuzz/bin/fuzz_* >&2; exit 1; }
done
mkdir -p build/fuzz/crashes build/fuzz/log

# fuzz_one TARGET SECONDS RUNS: runs one fuzz target.
fuzz_one() {
  local name corpus seeds limit
  name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  seeds=tests/fuzz/seeds/${name#fuzz_}
  mkdir -p "$corpus"
  [ -d "$seeds" ] || seeds=
  if [ -n "$3" ]; then limit=-runs=$3; else limit=-max_total_time=$2; fi
  if "$1" "$limit" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$name-" "$corpus" ${seeds:+"$seeds"} >"build/fuzz/log/$name" 2>&1; then
    echo "fuzz: $name: no finding, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/log/$name") inputs"
  else
    echo "fuzz: $name failed; the end of build/fuzz/log/$name:" >&2
    tail -n 40 "build/fuzz/log/$name" >&2
    return 1
  fi
}
export -f fuzz_one
printf '%s\0' "${targets[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'fuzz_one "$1" "$2" "$3"' _ {} "$seconds" "$runs"
