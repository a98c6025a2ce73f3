// The part of --check that times a copy and multiply-adds: kernels that are compiled, checked and timed by measure(),
// as candidates are, so that they also show that all of that works here.
#include <algorithm>
#include <fstream>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "runtime/gpu_device.h"
#include "runtime/pool.h"
#include "worker/check.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"

namespace wl {
namespace {

constexpr int64_t kMib = 1 << 20;
constexpr int kChains = 12;  // independent multiply-adds, enough for two units of a latency of four to six
constexpr int64_t kCpuSteps = 100'000, kGpuSteps = 512;
constexpr int kLanes = 256, kEach = 4;  // lanes of a block of a GPU, and elements that each copies
constexpr double kSlow = 0.5;           // of the nominal rate

// What a kernel is checked and timed with.
struct Probe {
  Source source;
  std::vector<BufferSpec> buffers;
  Check check;
  double amount = 0;  // bytes or operations of one run
};

BufferSpec buffer_of(const char* name, int64_t elements, bool output) {
  BufferSpec spec;
  spec.name = name;
  spec.shape = {elements};
  spec.output = output;
  spec.stream = 1;
  return spec;
}

// Inputs of the multiply-adds are all 1, so x = p[0] = 1 and y = p[0] - p[1] = 0, which no compiler knows. Every output
// is the sum of what the chains begin with.
void fill_multiply_adds(Probe* probe, int64_t outputs) {
  probe->buffers = {buffer_of("p", 1024, false), buffer_of("q", outputs, true)};
  probe->buffers[0].fill.mean = 1;
  probe->buffers[0].fill.stddev = 0;
  probe->check.seed = 1;
  for (const int64_t at : {int64_t{0}, outputs / 2, outputs - 1})
    probe->check.samples.push_back({1, at, kChains * (kChains - 1) / 2.0, 0});
}

void fill_copy(Probe* probe, int64_t elements) {
  probe->buffers = {buffer_of("p", elements, false), buffer_of("q", elements, true)};
  probe->check.seed = 1;
  const BufferSpec& in = probe->buffers[0];
  for (const int64_t at : {int64_t{0}, elements / 3, elements / 2, elements - 1})
    probe->check.samples.push_back(
        {1, at, fill_value(in.fill, in.dtype, probe->check.seed, in.stream, static_cast<uint64_t>(at)), 0});
  probe->amount = 8 * static_cast<double>(elements);
}

// --- the CPU

const CpuTarget& row_of(const Device& device) {
  const std::vector<CpuTarget>& rows = cpu_targets();
  return *std::find_if(rows.begin(), rows.end(), [&](const CpuTarget& row) { return row.name == device.target; });
}

Source cpu_source(const Device& device, const std::string& entry, const std::string& body) {
  Source source;
  source.target = device.target;
  source.compiler = device.compilers.empty() ? "gcc" : device.compilers[0];
  source.entry = entry;
  source.threads = device.threads;
  source.text = cat("typedef float V __attribute__((vector_size(", 4 * row_of(device).lanes, ")));\nextern \"C\" void ",
                    entry, "(long block, void* const* args, char*) {\n", body, "}\n");
  return source;
}

Probe cpu_copy(const Device& device) {
  // Far more than the caches have, and no more than a small machine has room for.
  const int64_t bytes = std::clamp(4 * last_level_cache_bytes(), 64 * kMib, 256 * kMib);
  const int64_t vectors = 4096;  // of a block
  const int64_t elements_of_block = vectors * row_of(device).lanes;
  Probe probe;
  probe.source = cpu_source(device, "wl_check_copy",
                            cat("  const long n = ", vectors, ";\n  const V* p = (const V*)args[0] + block * n;\n",
                                "  V* q = (V*)args[1] + block * n;\n  for (long i = 0; i < n; ++i) q[i] = p[i];\n"));
  probe.source.grid = bytes / (4 * elements_of_block);
  fill_copy(&probe, probe.source.grid * elements_of_block);
  return probe;
}

Probe cpu_multiply_adds(const Device& device) {
  const int lanes = row_of(device).lanes;
  std::string body =
      "  const float* p = (const float*)args[0];\n  const V x = V{} + p[0], y = V{} + (p[0] - p[1]);\n  V ";
  for (int i = 0; i < kChains; ++i) append(&body, i == 0 ? "" : ", ", "a", i, " = V{} + ", i, ".0f");
  append(&body, ";\n  for (long i = 0; i < ", kCpuSteps, "; ++i) {\n   ");
  for (int i = 0; i < kChains; ++i) append(&body, " a", i, " = a", i, " * x + y;");
  append(&body, "\n  }\n  ((V*)args[1])[block] = a0");
  for (int i = 1; i < kChains; ++i) append(&body, " + a", i);
  body += ";\n";
  Probe probe;
  probe.source = cpu_source(device, "wl_check_multiply_adds", body);
  probe.source.grid = device.threads;
  fill_multiply_adds(&probe, static_cast<int64_t>(device.threads) * lanes);
  probe.amount = 2.0 * kChains * static_cast<double>(kCpuSteps) * device.threads * lanes;
  return probe;
}

// The highest clock of the first CPU in GHz, 0 if it is not known, and what is known of it.
std::pair<double, std::string> cpu_clock() {
  double khz = 0;
  std::ifstream highest(cat("/sys/devices/system/cpu/cpu", allowed_cpus()[0], "/cpufreq/cpuinfo_max_freq"));
  if (highest >> khz) return {khz / 1e6, ""};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    double mhz = 0;
    if (absl::StripAsciiWhitespace(field.first) == "cpu MHz" && absl::SimpleAtod(field.second, &mhz))
      return {mhz / 1e3, ", its boost not counted"};
  }
  return {0, ""};
}

// --- GPUs

// What the texts below use, as CUDA and as HIP without its headers spell it.
constexpr const char* kCudaPrelude = R"(#define WL_LANES 4
#define WL_WAVE 32
typedef float f32;
#define WL_KERNEL(name, grid, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define WL_IN(T, p, n) const T* __restrict__ p
#define WL_OUT(T, p, n) T* __restrict__ p
#define WL_ENTER const long block = blockIdx.x; const int thread = threadIdx.x
template <class T, int n> static __device__ T wl_load(const T* p) { return *p; }
template <int n, class T> static __device__ void wl_store(T* p, T value) { *p = value; }
)";
constexpr const char* kHipPrelude = R"(#define WL_LANES 4
#define WL_WAVE 64
typedef float f32;
#define WL_KERNEL(name, grid, threads, ...)                                                              \
  extern "C" __attribute__((global)) void __attribute__((amdgpu_flat_work_group_size(threads, threads))) \
  name(__VA_ARGS__)
#define WL_IN(T, p, n) const T* __restrict__ p
#define WL_OUT(T, p, n) T* __restrict__ p
#define WL_ENTER const long block = __builtin_amdgcn_workgroup_id_x(); const int thread = __builtin_amdgcn_workitem_id_x()
template <class T, int n> static __attribute__((device)) T wl_load(const T* p) { return *p; }
template <int n, class T> static __attribute__((device)) void wl_store(T* p, T value) { *p = value; }
)";

Source gpu_source(const Device& device, const std::string& entry, int64_t grid, int64_t in, int64_t out,
                  const std::string& body) {
  Source source;
  source.target = device.target;
  source.compiler = device.compilers.empty() ? "" : device.compilers[0];
  source.prelude = device.target.starts_with("hip") ? kHipPrelude : kCudaPrelude;
  source.entry = entry;
  source.threads = kLanes;
  source.grid = grid;
  source.text = cat("WL_KERNEL(", entry, ", ", source.grid, ", ", kLanes, ", WL_IN(f32, p, ", in, "), WL_OUT(f32, q, ",
                    out, ")) {\n  WL_ENTER;\n", body, "}\n");
  return source;
}

int64_t detail_of(const Device& device, const std::string& name) {
  int64_t value = 0;
  return absl::SimpleAtoi(device.detail(name), &value) ? value : 0;
}

Probe gpu_copy(const Device& device) {
  const bool large = detail_of(device, "memory_mib") >= 8192;
  const int64_t bytes = std::max(4 * device.l2_bytes, (large ? 512 : 16) * kMib);
  const int64_t elements = bytes / 4 / (kLanes * kEach) * (kLanes * kEach);
  Probe probe;
  probe.source = gpu_source(
      device, "wl_check_copy", elements / (kLanes * kEach), elements, elements,
      cat("  const long at = block * ", kLanes * kEach, " + thread;\n  for (int k = 0; k < ", kEach,
          "; ++k)\n    wl_store<1>(q + at + k * ", kLanes, ", wl_load<f32, 1>(p + at + k * ", kLanes, "));\n"));
  fill_copy(&probe, elements);
  return probe;
}

Probe gpu_multiply_adds(const Device& device) {
  const int64_t outputs = static_cast<int64_t>(device.threads) * 8 * kLanes;
  std::string body = "  const f32 x = wl_load<f32, 1>(p), y = x - wl_load<f32, 1>(p + 1);\n  f32 ";
  for (int i = 0; i < kChains; ++i) append(&body, i == 0 ? "" : ", ", "a", i, " = ", i, ".0f");
  append(&body, ";\n  for (int i = 0; i < ", kGpuSteps, "; ++i) {\n   ");
  for (int i = 0; i < kChains; ++i) append(&body, " a", i, " = a", i, " * x + y;");
  append(&body, "\n  }\n  wl_store<1>(q + block * ", kLanes, " + thread, a0");
  for (int i = 1; i < kChains; ++i) append(&body, " + a", i);
  body += ");\n";
  Probe probe;
  probe.source = gpu_source(device, "wl_check_multiply_adds", outputs / kLanes, 1024, outputs, body);
  fill_multiply_adds(&probe, outputs);
  probe.amount = 2.0 * kChains * static_cast<double>(kGpuSteps) * static_cast<double>(outputs);
  return probe;
}

// Multiply-adds of f32 that a unit (compiler/target/target.h) makes in a clock; 0: not known. From the vendors'
// throughput tables.
int lanes_of_unit(const std::string& target) {
  static const auto* const kRows = new std::map<std::string, int>{
      {"cuda:sm_70", 64},   {"cuda:sm_75", 64},   {"cuda:sm_80", 64},   {"cuda:sm_86", 128},  {"cuda:sm_87", 128},
      {"cuda:sm_89", 128},  {"cuda:sm_90", 128},  {"cuda:sm_90a", 128}, {"cuda:sm_100", 128}, {"cuda:sm_100a", 128},
      {"cuda:sm_120", 128}, {"hip:gfx906", 64},   {"hip:gfx908", 64},   {"hip:gfx90a", 64},   {"hip:gfx942", 128},
      {"hip:gfx1030", 128}, {"hip:gfx1100", 256}, {"hip:gfx1201", 256}};
  const auto row = kRows->find(target);
  return row == kRows->end() ? 0 : row->second;
}

// --- both

absl::StatusOr<Trial> measured(const Probe& probe, const Gpus::Gpu* gpu, MeasureOptions options) {
  if (gpu != nullptr) options.gpus = {*gpu};
  Batch batch;
  batch.id = probe.source.entry;
  batch.problem = {std::string(64, '0'), probe.buffers};
  batch.checks = {probe.check};
  batch.candidates = {{0, "", probe.source}};
  WL_ASSIGN_OR_RETURN(Measured out, measure(batch, options));
  if (out.trials.empty()) return absl::InternalError("nothing was measured");
  return std::move(out.trials[0]);
}

// The clocks after the samples of a GPU.
Finding clock_finding(const std::string& device, const std::vector<int64_t>& clocks_mhz) {
  const auto [least, most] = std::minmax_element(clocks_mhz.begin(), clocks_mhz.end());
  Finding out{device + " clock", Readiness::kOk, "", ""};
  if (*least == *most) {
    out.found = cat("held ", *most, " MHz");
    return out;
  }
  out.readiness = Readiness::kWarn;
  out.found = cat("between ", *least, " and ", *most, " MHz under load");
  out.todo = device.starts_with("cuda") ? "lock it: nvidia-smi -pm 1, then nvidia-smi -lgc MHZ below the lower figure"
                                        : "lock it: rocm-smi --setperfdeterminism MHZ below the lower figure";
  return out;
}

}  // namespace

void check_rates(const Device& device, const Gpus::Gpu* gpu, const MeasureOptions& options, MachineCheck* check) {
  const std::string name = gpu != nullptr ? gpu->name : "cpu";
  DeviceRate copy{name, "copy", 0, 0, "GB/s", "the data sheet of its memory: channels x MT/s x 8 bytes"};
  DeviceRate adds{name, "multiply-adds", 0, 0, "GFLOP/s", ""};
  if (gpu == nullptr) {
    const auto [ghz, known] = cpu_clock();
    adds.nominal = row_of(device).flops_per_clock * device.threads * ghz;
    adds.nominal_by = absl::StrFormat("%d threads at %.2f GHz%s", device.threads, ghz, known);
  } else {
    const auto clock =
        static_cast<double>(std::max(detail_of(device, "clock_max_mhz"), detail_of(device, "clock_rated_mhz")));
    const auto memory_clock = static_cast<double>(detail_of(device, "memory_rated_mhz"));
    copy.nominal = 2 * memory_clock * static_cast<double>(detail_of(device, "bus_bits")) / 8e3;
    copy.nominal_by = absl::StrFormat("2 x %.0f MHz x %s bits", memory_clock, device.detail("bus_bits"));
    adds.nominal = 2e-3 * lanes_of_unit(device.target) * device.threads * clock;
    adds.nominal_by = absl::StrFormat("%d units at %.0f MHz", device.threads, clock);
  }
  Finding works{name + " kernels", Readiness::kOk, "compile, run and are right", ""};
  std::vector<int64_t> clocks;
  for (DeviceRate* rate : {&copy, &adds}) {
    const bool copies = rate == &copy;
    const Probe probe = gpu == nullptr ? copies ? cpu_copy(device) : cpu_multiply_adds(device)
                        : copies ? gpu_copy(device)
                                       : gpu_multiply_adds(device);
    const absl::StatusOr<Trial> trial = measured(probe, gpu, options);
    if (trial.ok() && trial->outcome == Outcome::kCorrect) {
      const double ns = undisturbed_ns(trial->samples_ns);
      if (ns > 0) rate->measured = probe.amount / ns;
      clocks.insert(clocks.end(), trial->clocks_mhz.begin(), trial->clocks_mhz.end());
    } else {
      works.readiness = Readiness::kMissing;
      works.found = trial.ok() ? cat(kOutcomeNames[static_cast<int>(trial->outcome)], ": ", trial->message)
                               : std::string(trial.status().message());
      works.todo = cat("the ", rate->what, " kernel failed: candidates would, too");
    }
    if (rate->measured > 0 && rate->measured < kSlow * rate->nominal && works.readiness == Readiness::kOk) {
      works.readiness = Readiness::kWarn;
      works.todo = "less than half of what it should do: look for other load, power limits and throttling";
    }
    check->rates.push_back(*rate);
  }
  check->findings.push_back(std::move(works));
  if (!clocks.empty()) check->findings.push_back(clock_finding(name, clocks));
}

}  // namespace wl
