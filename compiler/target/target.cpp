#include "compiler/target/target.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/suggest.h"
#include "compiler/target/prelude/prelude.h"

namespace wl {
namespace {

constexpr int64_t kKb = 1024, kMb = 1024 * 1024;
// A multiply-add whose sum is i64 runs at this share of the rate of i32, because it takes three or four products of
// i32, and a carry.
constexpr double kLongProduct = 0.25;
constexpr uint32_t kAmpere = kF64Functions | kAsyncCopy | kMma16 | kPhases, kHopper = kAmpere | kClusters,
                   kHopperA = kHopper | kWaveGroups, kMi300 = kAsyncCopy | kMfmaF16 | kMfmaBf16;

// Makes the row of a GPU, of which one thread loads at most 16 bytes at once. `arithmetic` has the rates of one unit
// (multiprocessor).
constexpr Target gpu_row(std::string_view name, std::string_view family, Gpu gpu, uint32_t features,
                         Arithmetic arithmetic) {
  const double share = gpu.bytes_per_ns / gpu.units;
  // The peaks follow from the nominal rates: GPUs of one generation differ by less than a factor of 2, and no cache is
  // 8 times as fast as the memory behind it. The simulator has no peak, since its times mean nothing: its lanes are
  // fibers of the host.
  const Peak peak = family == "sim" ? Peak{} : Peak{2 * arithmetic.flops_per_ns, 8 * share, 8 * share, 400};
  return {name, family, 4, gpu.lane_registers, true, arithmetic, share, 3 * share, peak, gpu, features};
}

// Peaks of CPUs at 6 GHz: two multiply-add units (Arm: four), the bytes that loads and stores move in a cycle, and one
// cache line of 64 bytes in a cycle from beyond L1. All caches beyond L1 have one rate, because virtual machines do not
// always report the sizes of caches.
constexpr Peak kAvx512Peak = {400, 1200, 400, 2}, kAvx2Peak = {200, 600, 400, 2}, kNarrowPeak = {200, 600, 400, 2};

// Where the figures of the table come from.
// * CPUs: rates of one multiply-add unit. A multiply-add of i32 takes two or three instructions where one of f32 takes
//   one: vpmulld is two operations and the addition a third; SSE2 multiplies in 64 bits.
constexpr Target kTargets[] = {
    // Columns: name, family, lanes, registers, streaming, {f32 flops/ns, f64, i32, dots of bf16 and i8, matrices of
    // f16, bf16 and i8}, copy, l2, peak
    {"cpu:avx512", "cpu", 16, 32, true, {120, 0.5, 0.33}, 18, 100, kAvx512Peak},
    {"cpu:avx2", "cpu", 8, 16, true, {60, 0.5, 0.33}, 12, 60, kAvx2Peak},
    {"cpu:neon", "cpu", 4, 32, false, {40, 0.5, 0.5}, 12, 40, kNarrowPeak},
    {"cpu:generic", "cpu", 4, 16, false, {20, 0.5, 0.2}, 10, 30, kNarrowPeak},
    // CPUs with dot products of words: of u8 with i8, and of bf16. The instruction for bf16 takes four times as long as
    // a multiply-add of f32: a 5th generation Xeon begins one in two cycles, but two multiply-adds in each cycle.
    {"cpu:avx512_vnni", "cpu", 16, 32, true, {120, 0.5, 0.33, 0, 4}, 18, 100, kAvx512Peak},
    {"cpu:avx512_bf16", "cpu", 16, 32, true, {120, 0.5, 0.33, 0.5, 4}, 18, 100, kAvx512Peak},
    // CPUs that also have tile registers (Intel's AMX, from the 4th generation Xeon on). According to publications, a
    // core multiplies 16 x 16 by 16 x 16 words in 16 cycles: 512 multiply-adds of bf16, or 1024 of bytes, in a cycle in
    // which vectors do 32 of f32. A measurement for bf16 gave 15 times the rate of f32.
    {"cpu:amx", "cpu", 16, 32, true, {120, 0.5, 0.33, 0.5, 4, 0, 16, 32}, 18, 100, kAvx512Peak, {}, kTileRegisters},
#define WL_ROW(...) \
  { __VA_ARGS__ }
#define WL_GPU(name, family, lanes, gpu, features, arithmetic) \
  gpu_row(name, family, WL_ROW gpu, features, WL_ROW arithmetic),
#include "compiler/base/gpus.def"
#undef WL_GPU
#undef WL_ROW
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

absl::StatusOr<const Target*> target_named(std::string_view name) {
  for (const Target& row : kTargets)
    if (row.name == name) return &row;
  return invalid("unknown target \"", name, "\"", suggestion_of(name, kTargets, {"cpu", "cuda", "hip"}), "; known: ",
                 absl::StrJoin(kTargets, ", ", [](std::string* out, const Target& t) { out->append(t.name); }));
}

absl::Status check_target(std::string_view name) {
  return name == "cpu" || name == "cuda" || name == "hip" ? absl::OkStatus() : target_named(name).status();
}

double Arithmetic::dots(DType a, DType b) const {
  const std::optional<DType> sum = sum_of_dot(a, b);
  return !sum ? 0 : is_float(*sum) ? dot_bf16 : dot_i8;
}

double Arithmetic::matrices(DType a, DType b) const {
  if (a == b) return a == DType::f16 ? matrix_f16 : a == DType::bf16 ? matrix_bf16 : a == DType::f32 ? matrix_tf32 : 0;
  return sum_of_dot(a, b) == DType::i32 ? matrix_i8 : 0;
}

double Arithmetic::multiply_adds(DType a, DType b, DType sum) const {
  const double rate = dots(a, b);
  if (is_float(sum)) return sum == DType::f64 ? f64 : std::max(1., rate);
  if (rate > 0) return rate;
  return size_of(sum) == 8 ? i32 * kLongProduct : i32;
}

CodeLimits code_limits(const Gpu& gpu) {
  return {gpu.wave,           gpu.block_threads,  gpu.unit_threads, gpu.unit_blocks,
          gpu.lane_registers, gpu.unit_registers, gpu.block_shared, gpu.unit_shared};
}

std::vector<int64_t> panel_widths(const Target& target) {
  if (target.is_gpu()) return {};
  // A micro-kernel two vectors wide fills 16 registers, one four vectors wide fills 32. Panels are no wider than a
  // micro-kernel: if a micro-kernel read only part of each row of a panel, these parts would map to a few sets of L1
  // and evict each other.
  const int64_t lanes = target.lanes;
  if (target.vector_registers < 32) return {2 * lanes, lanes};
  return {4 * lanes, 2 * lanes, 3 * lanes};
}

int64_t residency_bound(std::string_view target, int64_t wave, int64_t blocks, int64_t threads) {
  constexpr int64_t kSimds = 4;
  if (!target.starts_with("hip:")) return blocks;
  return std::max<int64_t>(1, (blocks * threads / wave + kSimds - 1) / kSimds);
}

int Machine::dies() const {
  return std::max(1, static_cast<int>(int64_t{target->gpu.dies} * multiprocessors() / std::max(1, target->gpu.units)));
}

absl::StatusOr<Machine> machine_of(const Device& device) {
  Machine machine;
  WL_ASSIGN_OR_RETURN(machine.target, target_named(device.target));
  machine.threads = std::max(1, device.threads);
  if (machine.target->is_gpu() && machine.target->family != "sim")
    machine.units = device.threads > 1 ? device.threads : 0;
  machine.l1_bytes = device.l1_bytes;
  machine.l2_bytes = device.l2_bytes;
  machine.l3_bytes = device.l3_bytes;
  const auto has = [&](std::string_view name) {
    return std::find(device.compilers.begin(), device.compilers.end(), name) != device.compilers.end();
  };
  machine.gcc = has("gcc");
  machine.clang = has("clang");
  machine.library = library_named(library_in(device.libraries));
  return machine;
}

std::string prelude_text(const Target& target, int lanes) {
  std::string out = cat("#define WL_LANES ", lanes, "\n");
  if (!target.is_gpu()) return cat(out, cpu_prelude(), target.features & kTileRegisters ? cpu_tile_prelude() : "");
  append(&out, "#define WL_WAVE ", target.gpu.wave, "\n");
  return out + std::string(target.family == "cuda"  ? cuda_prelude()
                           : target.family == "hip" ? hip_prelude()
                                                    : sim_prelude());
}

}  // namespace wl
