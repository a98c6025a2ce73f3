// The cost of the sandbox: batches of eight kernels, in turn with and without it, each compiled and measured as a
// worker does it. Prints one line of JSON for each number of threads: the wall time of a batch (least and median), and
// the ratio of the fastest kernel's time in the sandbox to that without (the median over batches).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "compiler/base/status.h"
#include "worker/measure.h"

namespace wl {
namespace {

constexpr int kPairs = 20, kKernels = 8;
constexpr int64_t kElements = 1 << 18;  // number of floats of each argument, one MiB, so that a call takes about 50 us

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Batch sums(int threads) {
  Batch batch;
  batch.id = "bench/sandbox/0";
  for (const char* name : {"a", "b", "c"}) {
    BufferSpec spec;
    spec.name = name;
    spec.shape = {kElements};
    spec.output = spec.name == "c";
    spec.stream = static_cast<uint64_t>(name[0]);
    batch.problem.buffers.push_back(spec);
  }
  for (int64_t k = 0; k < kKernels; ++k) {
    Candidate candidate;
    candidate.trial = k;
    candidate.source.target = "cpu:generic";
    candidate.source.compiler = "gcc";
    candidate.source.entry = cat("k", k);
    candidate.source.grid = 256;
    candidate.source.threads = threads;
    candidate.source.text = cat("extern \"C\" void k", k, R"((long i, void* const* args, char*) {
  const float *a = (const float*)args[0] + i * 1024, *b = (const float*)args[1] + i * 1024;
  float* c = (float*)args[2] + i * 1024;
  for (int j = 0; j < 1024; ++j) c[j] = a[j] * b[j] + a[j];
}
)");
    batch.candidates.push_back(candidate);
  }
  batch.recipe.budget_ns = 20'000'000;
  batch.recipe.hopeless_factor = 1e9;
  return batch;
}

absl::Status compare(const std::string& runner, int threads) {
  const Batch batch = sums(threads);
  std::vector<double> walls[2], ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::vector<double> times[2];
    for (int turn = 0; turn < 2; ++turn) {
      MeasureOptions options;
      options.runner = runner;
      options.work_dir = std::filesystem::temp_directory_path().string();
      const int boxed = (pair + turn) % 2;
      options.sandbox = boxed ? Sandbox::kBubblewrap : Sandbox::kNone;
      const double begin = now_s();
      WL_ASSIGN_OR_RETURN(const Measured measured, measure(batch, options));
      walls[boxed].push_back(now_s() - begin);
      for (const Trial& trial : measured.trials) {
        if (trial.outcome != Outcome::kCorrect) return invalid("trial ", trial.trial, ": ", trial.message);
        times[boxed].push_back(undisturbed_ns(trial.samples_ns));
      }
    }
    ratios.push_back(*std::min_element(times[1].begin(), times[1].end()) /
                     *std::min_element(times[0].begin(), times[0].end()));
  }
  for (std::vector<double>* list : {&walls[0], &walls[1], &ratios}) std::sort(list->begin(), list->end());
  std::printf(
      "{\"threads\": %d, \"batch_s\": {\"none\": [%.4f, %.4f], \"bubblewrap\": [%.4f, %.4f]}, \"kernel_ratio\": "
      "%.4f}\n",
      threads, walls[0][0], walls[0][kPairs / 2], walls[1][0], walls[1][kPairs / 2], ratios[kPairs / 2]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int, char** argv) {
  const std::string runner = (std::filesystem::absolute(argv[0]).parent_path() / "warploom-runner").string();
  for (const int threads : {1, 2}) {
    if (const absl::Status status = wl::compare(runner, threads); !status.ok()) {
      std::fprintf(stderr, "sandbox_cost: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
}
