// A Target is data: limits, vector width, rates. One printer serves all of them; what differs in spelling is a function
// of the target's prelude. A CPU generation is a row of kTargets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/base/records.h"
#include "compiler/base/status.h"

namespace wl {

struct Target {
  std::string_view name;    // "cpu:avx512"
  std::string_view family;  // "cpu"
  int lanes;                // f32 elements of one vector register
  int vector_registers;
  bool masked_tails;      // masked loads and stores are one instruction
  bool streaming_stores;  // non-temporal vector stores exist
  // Nominal rates, for ranking only; per thread, elements of f32 or bytes per ns.
  double flops_per_ns;
  double copy_bytes_per_ns;
  double l2_bytes_per_ns;
};

std::span<const Target> targets();  // kTargets
// Error lists the rows there are.
absl::StatusOr<const Target*> target_named(std::string_view name);

// A target row together with the machine that will run it: what lowering and search may look at.
struct Machine {
  const Target* target = nullptr;
  int threads = 1;
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  bool gcc = true, clang = false;
};
absl::StatusOr<Machine> machine_of(const Device& device);

// Text that precedes every kernel: defines WL_LANES and includes prelude/cpu.h by value.
std::string prelude_text(const Target& target);

}  // namespace wl
