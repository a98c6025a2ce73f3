#include "worker/compile.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "compiler/base/batch_id.h"
#include "compiler/base/status.h"
#include "files/read.h"
#include "runtime/gpu_device.h"
#include "runtime/pool.h"
#include "worker/device_runner.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/code_judge.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

int jobs_of(const MeasureOptions& options) {
  return options.compile_jobs > 0 ? options.compile_jobs : static_cast<int>(allowed_cpus().size());
}

bool for_gpu(const Batch& batch) {
  return !batch.candidates.empty() && is_gpu_name(batch.candidates[0].source.target);
}

// Whether the first program of this name on PATH is in /usr, a folder that every sandbox shows.
bool of_the_system(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path != nullptr ? path : "", ':')) {
    std::error_code error;
    const std::string file = absl::StrCat(folder, "/", program);
    if (access(file.c_str(), X_OK) == 0)
      return absl::StartsWith(std::filesystem::canonical(file, error).string(), "/usr/");
  }
  return false;
}

// `kept`: whether the objects are kept for later batches. Such an object must not depend on other candidates, so its
// kernel is compiled alone.
CompileOptions compile_into(const std::string& folder, const MeasureOptions& options, bool kept) {
  CompileOptions compile;
  compile.folder = folder;
  compile.jobs = jobs_of(options);
  compile.unit = kept ? 1 : 8;
  compile.deadline_ns = options.compile_deadline_ns;
  compile.sandbox = options.sandbox;
  compile.cancel = options.cancel;
  return compile;
}

// Compiles a batch for the CPU. The objects of a promotion are kept in options.state, for later batches and for a
// repetition of the promotion.
absl::StatusOr<std::vector<Compiled>> compile_for_cpu(const Batch& batch, const MeasureOptions& options,
                                                      const CompileOptions& compile) {
  if (options.state == nullptr) return compile_cpu(batch.candidates, compile);
  KeptObjects& kept = options.state->objects;
  const auto missing = [&](const std::vector<Candidate>& candidates) -> absl::StatusOr<std::vector<Compiled>> {
    WL_ASSIGN_OR_RETURN(std::vector<Compiled> compiled, compile_cpu(candidates, compile));
    for (size_t i = 0; batch.keep_objects && i < compiled.size(); ++i) {
      if (compiled[i].outcome != Outcome::kCorrect) continue;
      WL_ASSIGN_OR_RETURN(std::string object, PrivateFolder::read(compiled[i].object));
      kept.keep(candidates[i].source, std::move(object));
    }
    return compiled;
  };
  return kept.provide(batch.candidates, compile.folder, missing);
}

void add_sandbox(Sandbox sandbox, Device& device) {
  append(&device.details, device.details.empty() ? "" : " ", kSandboxDetail, "=", name_of(sandbox));
}

}  // namespace

Device describe_device(Sandbox sandbox) {
  Device device = describe_cpu();
  add_sandbox(sandbox, device);
  return device;
}

absl::Status sandbox_serves(const std::string& work_dir) {
  WL_RETURN_IF_ERROR(sandbox_works());
  std::vector<Candidate> candidates;
  for (const CpuCompiler& row : cpu_compilers()) {
    if (of_the_system(row.program) || !program_runs(row.program)) continue;
    Candidate candidate;
    candidate.source.target = "cpu:generic";
    candidate.source.compiler = row.name;
    candidate.source.text = "extern \"C\" void wl_probe() {}\n";
    candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const PrivateFolder folder, PrivateFolder::make(work_dir));
  CompileOptions options;
  options.folder = folder.path();
  options.sandbox = Sandbox::kBubblewrap;
  WL_ASSIGN_OR_RETURN(const std::vector<Compiled> compiled, compile_cpu(candidates, options));
  for (size_t i = 0; i < compiled.size(); ++i)
    if (compiled[i].outcome != Outcome::kCorrect)
      return absl::FailedPreconditionError(
          absl::StrCat(candidates[i].source.compiler, " does not compile in the sandbox: ", compiled[i].message,
                       "\nput a compiler before it on PATH whose files are in /usr, or beside its folder bin; or ",
                       kWithoutSandbox));
  return absl::OkStatus();
}

Gpus find_gpus(const std::string& runner, Sandbox sandbox) {
  constexpr int64_t kDeadline = 20'000'000'000;
  Gpus gpus;
  absl::StatusOr<Runner> child = Runner::start({runner, "describe", nullptr, nullptr, sandbox});
  absl::StatusOr<DescribeAnswer> answer =
      child.ok() ? child->describe(monotonic_ns() + kDeadline) : absl::StatusOr<DescribeAnswer>(child.status());
  if (!answer.ok()) {
    gpus.missing.push_back(absl::StrCat("asking the drivers failed: ", std::string(answer.status().message())));
    return gpus;
  }
  for (DescribeAnswer::Found& found : answer->found) {
    add_sandbox(sandbox, found.device);
    gpus.found.push_back({found.name, std::move(found.device)});
  }
  gpus.missing = std::move(answer->missing);
  return gpus;
}

std::string device_of(const Batch& batch, const MeasureOptions& options) {
  if (!for_gpu(batch)) return "cpu";
  const std::string& target = batch.candidates[0].source.target;
  const std::string family = target.substr(0, target.find(':') + 1);
  const Gpus::Gpu* related = nullptr;
  for (const Gpus::Gpu& gpu : options.gpus) {
    if (gpu.device.target == target) return gpu.name;
    if (related == nullptr && gpu.device.target.starts_with(family)) related = &gpu;
  }
  return related != nullptr ? related->name : "none";
}

std::string serves_of(const Batch& batch, const std::string& device) {
  if (for_gpu(batch)) return device;
  if (batch.promotion() || !batch.chains.empty()) return "";
  return absl::StrCat(device, " ", search_of(batch.id), " ", batch.trace);
}

SetupCommand setup_of(const Batch& batch) {
  SetupCommand setup;
  const auto most = static_cast<int>(allowed_cpus().size());
  setup.buffers = batch.problem.buffers;
  setup.cold = batch.recipe.cold;
  setup.trace = batch.trace;
  setup.cache_bytes = last_level_cache_bytes();
  setup.threads = batch.recipe.threads;
  for (const Candidate& candidate : batch.candidates) {
    if (batch.recipe.threads <= 0 && !for_gpu(batch)) setup.threads = std::max(setup.threads, candidate.source.threads);
    setup.libraries = setup.libraries || !candidate.source.library.empty();
  }
  setup.threads = std::clamp(setup.threads, 1, most);
  // The CPU time allows for checking, timing and checking again of every candidate, each of these steps up to its
  // deadline, and for one candidate more.
  setup.cpu_s = 3 * (batch.recipe.deadline_ns / 1'000'000'000 + 2) * static_cast<int64_t>(batch.candidates.size() + 1);
  return setup;
}

LoadCommand load_of(const Batch& batch, size_t candidate, std::string object) {
  const Source& source = batch.candidates[candidate].source;
  const int threads = batch.recipe.threads > 0 && !for_gpu(batch) ? batch.recipe.threads : source.threads;
  return {static_cast<int64_t>(candidate),
          std::move(object),
          source.entry,
          source.grid,
          threads,
          source.scratch_bytes,
          source.passes,
          source.work_bytes,
          source.library};
}

absl::StatusOr<std::vector<Compiled>> compile_batch(const Batch& batch, const MeasureOptions& options,
                                                    const std::string& folder,
                                                    const std::function<void(int done)>& progress) {
  if (options.compiled != nullptr) return *options.compiled;
  CompileOptions compile = compile_into(folder, options, batch.keep_objects);
  compile.progress = progress;
  if (!for_gpu(batch)) return compile_for_cpu(batch, options, compile);
  if (options.state != nullptr && options.state->pool == nullptr)
    options.state->pool = std::make_unique<CompilePool>(options.runner, compile.jobs, options.sandbox);
  if (options.state != nullptr) return options.state->pool->compile(batch.candidates, batch.limits, compile);
  return CompilePool(options.runner, compile.jobs, options.sandbox).compile(batch.candidates, batch.limits, compile);
}

void compile_ahead(const std::vector<const Batch*>& batches, const MeasureOptions& options,
                   const std::function<void(int done)>& progress) {
  if (options.state == nullptr || options.compiled != nullptr) return;
  std::vector<Candidate> candidates;
  for (const Batch* batch : batches)
    if (batch->keep_objects && !for_gpu(*batch))
      std::copy_if(batch->candidates.begin(), batch->candidates.end(), std::back_inserter(candidates),
                   [&](const Candidate& each) { return options.state->objects.find(each.source) == nullptr; });
  if (candidates.size() < 2) return;
  const absl::StatusOr<PrivateFolder> folder = PrivateFolder::make(options.work_dir);
  if (!folder.ok()) return;
  CompileOptions compile = compile_into(folder->path(), options, /*kept=*/true);
  compile.progress = progress;
  const auto compiled = compile_cpu(candidates, compile);
  for (size_t i = 0; compiled.ok() && i < compiled->size(); ++i) {
    if ((*compiled)[i].outcome != Outcome::kCorrect) continue;
    absl::StatusOr<std::string> object = PrivateFolder::read((*compiled)[i].object);
    if (object.ok()) options.state->objects.keep(candidates[i].source, *std::move(object), (*compiled)[i].seconds);
  }
}

std::vector<size_t> order_of(const std::vector<Compiled>& compiled) {
  std::vector<size_t> order(compiled.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto promise = [&](size_t i) { return compiled[i].code.registers > 0 ? promise_of(compiled[i].code) : 0; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return promise(a) > promise(b); });
  return order;
}

absl::StatusOr<std::string> build_object(const Source& source, const std::string& runner, Sandbox sandbox,
                                         const std::atomic<bool>* cancel) {
  Batch batch;
  batch.keep_objects = true;
  batch.candidates.emplace_back().source = source;
  MeasureOptions options;
  options.runner = runner;
  options.sandbox = sandbox;
  options.compile_jobs = 1;
  options.cancel = cancel;
  WL_ASSIGN_OR_RETURN(options.work_dir, temporary_folder());
  WL_ASSIGN_OR_RETURN(const PrivateFolder folder, PrivateFolder::make(options.work_dir));
  WL_ASSIGN_OR_RETURN(const std::vector<Compiled> made, compile_batch(batch, options, folder.path(), [](int) {}));
  // A candidate for a GPU also has an object if its code was rejected as slow; only a missing object is an error.
  if (made.size() != 1 || made[0].object.empty())
    return invalid("the kernel ", source.entry,
                   " does not compile on this machine: ", made.empty() ? "" : made[0].message);
  return PrivateFolder::read(made[0].object);
}

std::string own_compiler(const Source& source) {
  if (is_gpu_name(source.target)) return gpu_compiler_version(source.target);
  static const std::string* const kHere = new std::string(describe_device().compiler_versions);
  return compiler_of(*kHere, source);
}

}  // namespace wl
