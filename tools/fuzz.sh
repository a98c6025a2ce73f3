#!/bin/bash
# Runs every fuzz target of the fuzz preset for SECONDS each; a crash leaves its input in build/fuzz/crashes and fails.
#   tools/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS}
shopt -s nullglob
targets=(build/fuzz/bin/fuzz_*)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target in build/fuzz/bin: build the fuzz preset first" >&2; exit 1; }
mkdir -p build/fuzz/crashes
for target in "${targets[@]}"; do
  name=$(basename "$target")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=tests/fuzz/seeds/${name#fuzz_}
  echo "fuzz: $name for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/crashes/"$name"- "$corpus" ${seeds:+$([ -d "$seeds" ] && echo "$seeds")}
done
