#include "tests/unit/worker/kernels.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace wl::testing {

const char* const kAdd = "for (long k = i * 64; k < i * 64 + 64; ++k) c[k] = a[k] + b[k];";

namespace {

// Declarations in place of headers, which take longer to compile than all kernels together.
constexpr char kPrelude[] = R"(extern "C" {
void* malloc(unsigned long); void free(void*); void abort(); void _exit(int); int fork(); int close(int);
unsigned sleep(unsigned); long write(int, const void*, unsigned long);
void* memset(void*, int, unsigned long); void* memcpy(void*, const void*, unsigned long);
}
)";

}  // namespace

Batch add_batch(int64_t elements, int64_t stride) {
  Batch batch;
  batch.id = "test/add/0";
  batch.problem.key = "0123";
  for (const char* name : {"a", "b", "c"}) {
    BufferSpec spec;
    spec.name = name;
    spec.shape = {elements / 64, 64};
    spec.output = spec.name == "c";
    spec.stream = static_cast<uint64_t>(name[0]);
    batch.problem.buffers.push_back(spec);
  }
  for (uint64_t seed : {1, 2}) {
    Check check;
    check.seed = seed;
    for (int64_t i = 0; i < elements; i += stride) {
      double sum = 0;
      for (size_t b = 0; b < 2; ++b) {
        const BufferSpec& spec = batch.problem.buffers[b];
        sum += fill_value(spec.fill, spec.dtype, seed, spec.stream, static_cast<uint64_t>(i));
      }
      check.samples.push_back({2, i, sum, 1e-6});
    }
    batch.checks.push_back(check);
  }
  batch.recipe.budget_ns = 2'000'000;
  batch.recipe.deadline_ns = 10'000'000'000;
  return batch;
}

Candidate candidate(int64_t trial, const std::string& body, const std::string& before) {
  Candidate made;
  made.trial = trial;
  made.plan = absl::StrCat("plan ", trial);
  made.source.target = "cpu:generic";
  made.source.compiler = "gcc";
  made.source.prelude = kPrelude;
  made.source.entry = absl::StrCat("k", trial);
  made.source.grid = 16;
  made.source.text = absl::StrReplaceAll(
      absl::StrCat(before, "\nextern \"C\" void ENTRY(long i, void* const* args, char*) {\n",
                   "const float* a = (const float*)args[0]; const float* b = (const float*)args[1];\n",
                   "float* c = (float*)args[2];\n", body, "\n}\n"),
      {{"ENTRY", made.source.entry}, {"$", made.source.entry + "_"}});
  return made;
}

MeasureOptions options() {
  MeasureOptions made;
  made.runner = std::string(WARPLOOM_BIN_DIR) + "/warploom-runner";
  made.work_dir = ::testing::TempDir();
  std::filesystem::create_directories(made.work_dir);
  static const bool kBoxes = sandbox_works().ok();
  made.sandbox = kBoxes ? Sandbox::kBubblewrap : Sandbox::kNone;
  return made;
}

}  // namespace wl::testing
