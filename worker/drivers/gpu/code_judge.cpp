#include "worker/drivers/gpu/code_judge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/base/code.h"

namespace wl {
namespace {

// The hardware allocates registers per lane, and shared memory per block, in multiples of these numbers.
constexpr int kRegisterPortion = 8, kSharedPortion = 128;
// A higher occupancy than this does not help: if half of the threads are resident, memory-bound kernels have enough
// loads in flight.
constexpr double kEnough = 0.5;

int64_t round_up(int64_t n, int64_t portion) {
  return (n + portion - 1) / portion * portion;
}

}  // namespace

double occupancy_of(const CodeFacts& code, const CodeLimits& limits, int threads) {
  if (limits.wave <= 0 || threads <= 0 || threads > limits.block_threads) return 0;
  const int64_t shared = code.static_shared + code.dynamic_shared;
  if (shared > limits.block_shared || code.registers > limits.lane_registers) return 0;
  const int64_t lanes = round_up(threads, limits.wave);
  int64_t blocks = std::min<int64_t>(limits.unit_blocks, limits.unit_threads / lanes);
  if (code.registers > 0)
    blocks = std::min(blocks, limits.unit_registers / (lanes * round_up(code.registers, kRegisterPortion)));
  if (shared > 0) blocks = std::min(blocks, limits.unit_shared / round_up(shared, kSharedPortion));
  return static_cast<double>(blocks * lanes) / limits.unit_threads;
}

std::string unfit_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source) {
  if (limits.wave == 0) return "";
  if (source.threads > limits.block_threads)
    return absl::StrCat("a block has ", source.threads, " threads; the most are ", limits.block_threads);
  if (code.static_shared + code.dynamic_shared > limits.block_shared)
    return absl::StrCat("a block takes ", code.static_shared + code.dynamic_shared,
                        " bytes of shared memory; the most are ", limits.block_shared);
  if (occupancy_of(code, limits, source.threads) <= 0)
    return absl::StrCat("not one block of ", source.threads, " threads with ", code.registers,
                        " registers each fits a unit");
  return "";
}

std::string reject_reason(const CodeFacts& code, const CodeLimits& limits, const Source& source) {
  if (code.spill_bytes > kMostSpill)
    return absl::StrCat("a lane spills ", code.spill_bytes, " bytes; at most ", kMostSpill, " pay");
  if (code.compare_and_swap) return "an atomic became a compare-and-swap loop";
  const auto narrow = [](const char* what, int promised, int widest) {
    return absl::StrCat("the plan promises ", what, " of ", promised, " bytes, the code's widest have ", widest);
  };
  if (code.widest_load > 0 && code.widest_load < source.load_bytes)
    return narrow("loads", source.load_bytes, code.widest_load);
  if (code.widest_store > 0 && code.widest_store < source.store_bytes)
    return narrow("stores", source.store_bytes, code.widest_store);
  return unfit_reason(code, limits, source);
}

double promise_of(const CodeFacts& code) {
  const double width =
      std::min(code.widest_load > 0 ? code.widest_load : 16, code.widest_store > 0 ? code.widest_store : 16);
  return width / 16 + std::min(code.occupancy, kEnough) - (code.spill_bytes > 0 ? 0.25 : 0.0);
}

}  // namespace wl
