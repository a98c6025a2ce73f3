#include "compiler/target/target.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/target/prelude/prelude.h"

namespace wl {
namespace {

constexpr Target kTargets[] = {
    // name, family, lanes, registers, masked, streaming, flops/ns, copy, l2
    {"cpu:avx512", "cpu", 16, 32, true, true, 120, 18, 100},
    {"cpu:avx2", "cpu", 8, 16, true, true, 60, 12, 60},
    {"cpu:neon", "cpu", 4, 32, false, false, 40, 12, 40},
    {"cpu:generic", "cpu", 4, 16, false, false, 20, 10, 30},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

absl::StatusOr<const Target*> target_named(std::string_view name) {
  for (const Target& row : kTargets)
    if (row.name == name) return &row;
  return invalid("unknown target \"", name, "\"; known: ",
                 absl::StrJoin(kTargets, ", ", [](std::string* out, const Target& t) { out->append(t.name); }));
}

absl::StatusOr<Machine> machine_of(const Device& device) {
  Machine machine;
  WL_ASSIGN_OR_RETURN(machine.target, target_named(device.target));
  machine.threads = std::max(1, device.threads);
  machine.l1_bytes = device.l1_bytes;
  machine.l2_bytes = device.l2_bytes;
  machine.l3_bytes = device.l3_bytes;
  const auto has = [&](std::string_view name) {
    return std::find(device.compilers.begin(), device.compilers.end(), name) != device.compilers.end();
  };
  machine.gcc = has("gcc");
  machine.clang = has("clang");
  return machine;
}

std::string prelude_text(const Target& target) {
  return cat("#define WL_LANES ", target.lanes, "\n", cpu_prelude());
}

}  // namespace wl
