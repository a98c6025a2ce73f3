#include "compiler/target/target.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/target/prelude/prelude.h"

namespace wl {
namespace {

constexpr int64_t kKb = 1024, kMb = 1024 * 1024;
constexpr uint32_t kVolta = kMmaF16 | kF64Functions, kAmpere = kVolta | kAsyncCopy | kMmaBf16, kAda = kAmpere | kMmaF8,
                   kHopper = kAda | kTensorMemory | kClusters, kCdna = kMmaF16 | kMmaBf16 | kAsyncCopy,
                   kRdna3 = kMmaF16 | kMmaBf16;

// A lane's load is 16 bytes; tails are predicated; the rates are those of one unit.
constexpr Target gpu_row(std::string_view name, std::string_view family, Gpu gpu) {
  const double share = gpu.bytes_per_ns / gpu.units;
  return {name, family, 4, gpu.lane_registers, true, true, 128, share, 3 * share, gpu};
}

constexpr Target kTargets[] = {
    // name, family, lanes, registers, masked, streaming, flops/ns, copy, l2
    {"cpu:avx512", "cpu", 16, 32, true, true, 120, 18, 100},
    {"cpu:avx2", "cpu", 8, 16, true, true, 60, 12, 60},
    {"cpu:neon", "cpu", 4, 32, false, false, 40, 12, 40},
    {"cpu:generic", "cpu", 4, 16, false, false, 20, 10, 30},
    gpu_row("cuda:sm_75", "cuda", {32, 1024, 1024, 16, 255, 65536, 64 * kKb, 64 * kKb, 40, 4 * kMb, 320, kVolta}),
    gpu_row("cuda:sm_80", "cuda", {32, 1024, 2048, 32, 255, 65536, 163 * kKb, 164 * kKb, 108, 40 * kMb, 1935, kAmpere}),
    gpu_row("cuda:sm_86", "cuda", {32, 1024, 1536, 16, 255, 65536, 99 * kKb, 100 * kKb, 84, 6 * kMb, 936, kAmpere}),
    gpu_row("cuda:sm_89", "cuda", {32, 1024, 1536, 24, 255, 65536, 99 * kKb, 100 * kKb, 128, 72 * kMb, 1008, kAda}),
    gpu_row("cuda:sm_90", "cuda", {32, 1024, 2048, 32, 255, 65536, 227 * kKb, 228 * kKb, 132, 50 * kMb, 3350, kHopper}),
    gpu_row("cuda:sm_90a", "cuda",
            {32, 1024, 2048, 32, 255, 65536, 227 * kKb, 228 * kKb, 132, 50 * kMb, 4800, kHopper | kMmaWarpgroup}),
    gpu_row("cuda:sm_100a", "cuda",
            {32, 1024, 2048, 32, 255, 65536, 227 * kKb, 228 * kKb, 148, 126 * kMb, 8000, kHopper | kMmaTensorCore5}),
    gpu_row("cuda:sm_120", "cuda", {32, 1024, 1536, 24, 255, 65536, 99 * kKb, 100 * kKb, 170, 96 * kMb, 1792, kHopper}),
    gpu_row("hip:gfx906", "hip", {64, 1024, 2560, 16, 256, 65536, 64 * kKb, 64 * kKb, 60, 4 * kMb, 1024, 0}),
    gpu_row("hip:gfx908", "hip", {64, 1024, 2560, 16, 256, 65536, 64 * kKb, 64 * kKb, 120, 8 * kMb, 1228, kMmaF16}),
    gpu_row("hip:gfx90a", "hip", {64, 1024, 2048, 16, 512, 131072, 64 * kKb, 64 * kKb, 104, 8 * kMb, 1638, kCdna}),
    gpu_row("hip:gfx942", "hip",
            {64, 1024, 2048, 16, 512, 131072, 64 * kKb, 64 * kKb, 304, 4 * kMb, 5300, kCdna | kMmaF8}),
    gpu_row("hip:gfx950", "hip",
            {64, 1024, 2048, 16, 512, 131072, 160 * kKb, 160 * kKb, 256, 4 * kMb, 8000, kCdna | kMmaF8}),
    gpu_row("hip:gfx1030", "hip", {32, 1024, 1024, 16, 256, 65536, 64 * kKb, 64 * kKb, 80, 4 * kMb, 512, 0}),
    gpu_row("hip:gfx1100", "hip", {32, 1024, 1024, 16, 256, 98304, 64 * kKb, 64 * kKb, 96, 6 * kMb, 960, kRdna3}),
    gpu_row("hip:gfx1201", "hip", {32, 1024, 1024, 16, 256, 98304, 64 * kKb, 64 * kKb, 64, 8 * kMb, 640, kRdna3}),
    // Lanes as fibers of the host: the limits of the smallest part of its family.
    gpu_row("sim:cuda", "sim",
            {32, 1024, 1024, 16, 255, 65536, 64 * kKb, 64 * kKb, 2, 4 * kMb, 1, kVolta | kAsyncCopy | kClusters}),
    gpu_row("sim:hip", "sim",
            {64, 1024, 2048, 16, 256, 65536, 64 * kKb, 64 * kKb, 2, 4 * kMb, 1, kF64Functions | kAsyncCopy}),
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

CodeLimits code_limits(const Gpu& gpu) {
  return {gpu.wave,           gpu.block_threads,  gpu.unit_threads, gpu.unit_blocks,
          gpu.lane_registers, gpu.unit_registers, gpu.block_shared, gpu.unit_shared};
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
  return machine;
}

std::string prelude_text(const Target& target, int lanes) {
  std::string out = cat("#define WL_LANES ", lanes, "\n");
  if (!target.is_gpu()) return cat(out, cpu_prelude());
  append(&out, "#define WL_WAVE ", target.gpu.wave, "\n");
  return out + std::string(target.family == "cuda"  ? cuda_prelude()
                           : target.family == "hip" ? hip_prelude()
                                                    : sim_prelude());
}

}  // namespace wl
