#include "worker/probes.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/base/status.h"
#include "runtime/gpu_device.h"
#include "worker/check.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

constexpr int64_t kMib = 1 << 20;
// Number of independent chains of multiply-adds: enough for two pipelines with a latency of up to six cycles.
constexpr int kChains = 12;
constexpr int64_t kCpuSteps = 100'000, kGpuSteps = 512;
// Number of threads in a block of a GPU, and number of elements that each thread copies.
constexpr int kLanes = 256, kEach = 4;

BufferSpec buffer_of(const char* name, int64_t elements, bool output) {
  BufferSpec spec;
  spec.name = name;
  spec.shape = {elements};
  spec.output = output;
  spec.stream = 1;
  return spec;
}

// All inputs of the multiply-adds are 1, so x = p[0] is 1 and y = p[0] - p[1] is 0. The compiler cannot know this, so
// it cannot remove the arithmetic. Each output is then the sum of the initial values of the chains.
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

// --- Probes for CPUs.

Probe cpu_copy(const Device& device, bool small) {
  // The large copy has far more bytes than the caches, but no more than a small machine has memory for.
  const int64_t bytes = small ? kMib : std::clamp(4 * last_level_cache_bytes(), 64 * kMib, 256 * kMib);
  const int64_t vectors = 4096;  // number of vectors that one block of the CPU's copy kernel copies
  const int64_t elements_of_block = vectors * cpu_row(device).lanes;
  Probe probe;
  probe.source =
      cpu_probe_source(device, "wl_check_copy",
                       cat("  const long n = ", vectors, ";\n  const V* p = (const V*)args[0] + block * n;\n",
                           "  V* q = (V*)args[1] + block * n;\n  for (long i = 0; i < n; ++i) q[i] = p[i];\n"));
  probe.source.grid = bytes / (4 * elements_of_block);
  fill_copy(&probe, probe.source.grid * elements_of_block);
  return probe;
}

Probe cpu_multiply_adds(const Device& device) {
  const int lanes = cpu_row(device).lanes;
  std::string body =
      "  const float* p = (const float*)args[0];\n  const V x = V{} + p[0], y = V{} + (p[0] - p[1]);\n  V ";
  for (int i = 0; i < kChains; ++i) append(&body, i == 0 ? "" : ", ", "a", i, " = V{} + ", i, ".0f");
  append(&body, ";\n  for (long i = 0; i < ", kCpuSteps, "; ++i) {\n   ");
  for (int i = 0; i < kChains; ++i) append(&body, " a", i, " = a", i, " * x + y;");
  append(&body, "\n  }\n  ((V*)args[1])[block] = a0");
  for (int i = 1; i < kChains; ++i) append(&body, " + a", i);
  body += ";\n";
  Probe probe;
  probe.source = cpu_probe_source(device, "wl_check_multiply_adds", body);
  probe.source.grid = device.threads;
  fill_multiply_adds(&probe, static_cast<int64_t>(device.threads) * lanes);
  probe.amount = 2.0 * kChains * static_cast<double>(kCpuSteps) * device.threads * lanes;
  return probe;
}

// --- Probes for GPUs.

// Definitions of the names that the kernel texts below use, for CUDA and for HIP without HIP's headers.
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

Probe gpu_copy(const Device& device, bool small) {
  const bool large = device_number(device, "memory_mib") >= 8192;
  const int64_t bytes = small ? kMib : std::max(4 * device.l2_bytes, (large ? 512 : 16) * kMib);
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

// --- Whether failures of a batch are the fault of the machine.

bool any_is_correct(const Measured& measured) {
  return std::any_of(measured.trials.begin(), measured.trials.end(),
                     [](const Trial& trial) { return trial.outcome == Outcome::kCorrect; });
}

// Whether failures of a batch may be the machine's fault: no candidate is correct or, for CPUs, one does not compile.
// For CPUs, compile errors are rare, and a full disk may be their cause. For GPUs they are common, since compilers
// refuse kernels that are too large.
bool may_be_the_machine(const Measured& measured, bool gpu) {
  if (measured.cancelled || measured.trials.empty()) return false;
  const auto uncompiled = [](const Trial& trial) { return trial.outcome == Outcome::kCompileError; };
  return !any_is_correct(measured) || (!gpu && std::any_of(measured.trials.begin(), measured.trials.end(), uncompiled));
}

}  // namespace

Source cpu_probe_source(const Device& device, const std::string& entry, const std::string& body) {
  Source source;
  source.target = device.target;
  source.compiler = device.compilers.empty() ? "gcc" : device.compilers[0];
  source.entry = entry;
  source.threads = device.threads;
  source.text = cat("typedef float V __attribute__((vector_size(", 4 * cpu_row(device).lanes,
                    ")));\nextern \"C\" void ", entry, "(long block, void* const* args, char*) {\n", body, "}\n");
  return source;
}

const CpuTarget& cpu_row(const Device& device) {
  const std::vector<CpuTarget>& rows = cpu_targets();
  return *std::find_if(rows.begin(), rows.end(), [&](const CpuTarget& row) { return row.name == device.target; });
}

int64_t device_number(const Device& device, const std::string& name) {
  int64_t value = 0;
  return absl::SimpleAtoi(device.detail(name), &value) ? value : 0;
}

Probe copy_probe(const Device& device, bool small) {
  return is_gpu_name(device.target) ? gpu_copy(device, small) : cpu_copy(device, small);
}

Probe multiply_add_probe(const Device& device) {
  return is_gpu_name(device.target) ? gpu_multiply_adds(device) : cpu_multiply_adds(device);
}

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

absl::Status known_kernel_works(const Device& device, const MeasureOptions& options, const std::string& prelude) {
  MeasureOptions own = options;
  own.state = nullptr;
  own.compiled = nullptr;
  own.fake = true;  // the probe is checked but not timed, since only the outcome of the check matters
  const Gpus::Gpu* gpu = nullptr;
  for (const Gpus::Gpu& one : options.gpus)
    if (one.device.target == device.target) gpu = &one;
  Probe probe = copy_probe(device, /*small=*/true);
  if (!prelude.empty()) probe.source.prelude = prelude;
  const absl::StatusOr<Trial> trial = measured(probe, gpu, own);
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
    return absl::CancelledError("cancelled");
  if (trial.ok() && trial->outcome == Outcome::kCorrect) return absl::OkStatus();
  const std::string why = trial.ok() ? cat(kOutcomeNames[static_cast<int>(trial->outcome)], ": ", trial->message)
                                     : std::string(trial.status().message());
  return absl::UnavailableError(cat("this machine cannot measure kernels now: one that is known to be right failed (",
                                    why, ")", remedies(options), "; no candidate is blamed for it"));
}

absl::StatusOr<Measured> measure_soundly(const Batch& batch, const Device& device, const MeasureOptions& options,
                                         bool* sound) {
  const bool gpu = is_gpu_name(device.target);
  if (!*sound) {
    const absl::Status works = known_kernel_works(device, options);
    if (absl::IsCancelled(works)) return Measured{.trials = {}, .objects = {}, .cancelled = true};
    WL_RETURN_IF_ERROR(works);
    *sound = true;
  }
  WL_ASSIGN_OR_RETURN(Measured out, measure(batch, options));
  if (!may_be_the_machine(out, gpu)) return out;
  const std::string prelude = gpu || batch.candidates.empty() ? "" : batch.candidates[0].source.prelude;
  const absl::Status works = known_kernel_works(device, options, prelude);
  if (absl::IsCancelled(works)) return Measured{.trials = {}, .objects = {}, .cancelled = true};
  WL_RETURN_IF_ERROR(works);
  return out;
}

// --- The peak rates of a device.

namespace {

constexpr int kSums = 8;  // number of independent sums; enough for a core that loads two vectors in a clock cycle
// Number of bytes that a thread reads in one run. It is so small that other programs seldom disturb a run.
constexpr int64_t kReadByRun = 2 * kMib;

Recipe short_recipe() {
  Recipe recipe;
  recipe.max_repeats = 40;
  // Nanoseconds during which samples are taken: so many samples that some of them are undisturbed.
  recipe.budget_ns = 300'000'000;
  recipe.deadline_ns = 5'000'000'000;
  return recipe;
}

// Returns the shortest time in ns, since other programs can only make a run slower; 0: the kernel has failed.
double least_ns(const Trial& trial) {
  if (trial.outcome != Outcome::kCorrect || trial.samples_ns.empty()) return 0;
  return static_cast<double>(*std::min_element(trial.samples_ns.begin(), trial.samples_ns.end()));
}

// A kernel in which every thread reads a region of its own again and again and adds up the values. All values are 0, so
// all sums are 0.
struct Read {
  std::string name;
  int64_t bytes = 0;  // total bytes of the regions that all threads read
  Probe probe = {};
};

Read read_of(const Device& device, const std::string& name, int64_t bytes_of_thread) {
  const int64_t vector = 4 * cpu_row(device).lanes, step = vector * kSums;
  // If a thread's region is larger than kReadByRun, it is divided into parts, and each run reads the part after that of
  // the last run. Before a part is read again, the other parts have evicted it from the caches.
  const int64_t parts = std::max<int64_t>(1, bytes_of_thread / kReadByRun);
  const int64_t bytes = std::max(step, bytes_of_thread / parts / step * step);
  const int64_t passes = std::max<int64_t>(1, kReadByRun / bytes);
  std::string body =
      cat("  static long runs[", device.threads, "];\n  const long n = ", bytes / vector,
          ";\n  const V* p = (const V*)args[0] + (block * ", parts, " + runs[block]++ % ", parts, ") * n;\n  V ");
  for (int i = 0; i < kSums; ++i) append(&body, i == 0 ? "" : ", ", "a", i, " = V{}");
  append(&body, ";\n  for (long pass = 0; pass < ", passes, "; ++pass) {\n    for (long i = 0; i < n; i += ", kSums,
         ") {\n     ");
  for (int i = 0; i < kSums; ++i) append(&body, " a", i, " += p[i + ", i, "];");
  // This line keeps the compiler from removing all passes over the region except one, since each pass reads the same
  // values.
  body += "\n    }\n    __asm__ volatile(\"\" ::: \"memory\");\n  }\n  ((V*)args[1])[block] = a0";
  for (int i = 1; i < kSums; ++i) append(&body, " + a", i);
  Read out{name, bytes * parts * device.threads};
  out.probe.source = cpu_probe_source(device, cat("wl_read_", name), body + ";\n");
  out.probe.source.grid = device.threads;
  out.probe.amount = static_cast<double>(bytes * passes * device.threads);
  return out;
}

// Returns probes that read memory and each cache level that exists, from the largest to the smallest.
std::vector<Read> reads_of(const Device& device) {
  const int64_t threads = device.threads;
  std::vector<Read> out = {
      read_of(device, "memory", std::clamp(2 * last_level_cache_bytes(), 64 * kMib, 256 * kMib) / threads)};
  if (device.l3_bytes / threads > device.l2_bytes) out.push_back(read_of(device, "L3", device.l3_bytes / 2 / threads));
  if (device.l2_bytes > device.l1_bytes) out.push_back(read_of(device, "L2", device.l2_bytes / 2));
  if (device.l1_bytes > 0) out.push_back(read_of(device, "L1", device.l1_bytes / 2));
  return out;
}

absl::StatusOr<MeasuredRates> rates_of_cpu(const Device& device, const MeasureOptions& options) {
  const std::vector<Read> reads = reads_of(device);
  const Probe adds = multiply_add_probe(device);
  Batch batch;
  batch.id = "rates";
  batch.recipe = short_recipe();
  batch.problem = {std::string(64, '0'), adds.buffers};
  BufferSpec& in = batch.problem.buffers[0];
  in.shape = {
      std::max_element(reads.begin(), reads.end(), [](const Read& a, const Read& b) { return a.bytes < b.bytes; })
          ->bytes /
      4};
  in.fill.mean = in.fill.stddev = 0;
  Check check;
  check.seed = adds.check.seed;
  check.samples = adds.check.samples;
  for (Check::Sample& sample : check.samples) sample.expected = 0;
  batch.checks = {check};
  batch.candidates = {{0, "", adds.source}};
  for (const Read& read : reads)
    batch.candidates.push_back({static_cast<int64_t>(batch.candidates.size()), "", read.probe.source});
  WL_ASSIGN_OR_RETURN(const Measured measured, measure(batch, options));
  if (measured.cancelled || measured.trials.size() != batch.candidates.size())
    return absl::CancelledError("measuring the device was given up");
  MeasuredRates out;
  const double ns = least_ns(measured.trials[0]);
  if (ns <= 0) return absl::UnavailableError(cat("multiply-adds cannot be timed: ", measured.trials[0].message));
  out.gflops = adds.amount / ns;
  for (size_t i = 0; i < reads.size(); ++i)
    if (const double took = least_ns(measured.trials[i + 1]); took > 0) {
      // A cache is at least as fast as the next larger one. If its measured rate is smaller, other programs have
      // disturbed the measurement, and the rate of the larger one is reported.
      const double behind = out.memories.empty() ? 0 : out.memories.back().gbps;
      out.memories.push_back({reads[i].name, reads[i].bytes, std::max(behind, reads[i].probe.amount / took)});
    }
  return out;
}

absl::StatusOr<MeasuredRates> rates_of_gpu(const Device& device, const Gpus::Gpu& gpu, const MeasureOptions& options) {
  const Probe adds = multiply_add_probe(device), copy = copy_probe(device, /*small=*/false);
  MeasuredRates out;
  WL_ASSIGN_OR_RETURN(const Trial added, measured(adds, &gpu, options));
  const double ns = least_ns(added);
  if (ns <= 0) return absl::UnavailableError(cat("multiply-adds cannot be timed: ", added.message));
  out.gflops = adds.amount / ns;
  WL_ASSIGN_OR_RETURN(const Trial copied, measured(copy, &gpu, options));
  if (const double took = least_ns(copied); took > 0)
    out.memories.push_back({"memory", static_cast<int64_t>(copy.amount), copy.amount / took});
  return out;
}

}  // namespace

absl::StatusOr<MeasuredRates> measure_rates(const Device& device, const MeasureOptions& options) {
  MeasureOptions own = options;
  own.state = nullptr;
  own.compiled = nullptr;
  return own.gpus.empty() ? rates_of_cpu(device, own) : rates_of_gpu(device, own.gpus.front(), own);
}

}  // namespace wl
