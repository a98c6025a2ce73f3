// If a machine cannot measure any kernel, the whole batch fails with an error that says so, and no candidate is blamed.
#include "worker/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/worker/gpu_testing.h"
#include "tests/unit/worker/kernels.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using ::testing::HasSubstr;
using testing::kAdd;

Batch wrong_batch() {
  Batch batch = add_batch(1024);
  batch.candidates.push_back(candidate(0, "this is not C++"));
  batch.candidates.push_back(candidate(1, "c[i * 64] = 7;"));
  return batch;
}

TEST(KnownKernel, BlamesCandidatesWhereTheMachineIsSound) {
  bool sound = false;
  const auto measured = measure_soundly(wrong_batch(), describe_device(), testing::options(), &sound);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_TRUE(sound);
  ASSERT_EQ(measured->trials.size(), 2u);
  EXPECT_EQ(measured->trials[0].outcome, Outcome::kCompileError);
  EXPECT_EQ(measured->trials[1].outcome, Outcome::kWrongResult);
}

TEST(KnownKernel, BlamesNoCandidateWhereTheMachineIsNot) {
  const testing::WithoutClang tools;
  const Device device = describe_device();
  tools.add("g++", "case \"$1\" in --version) exec /usr/bin/g++ \"$@\";; esac; echo no disk >&2; exit 1");
  Batch batch = add_batch(1024);
  batch.candidates.push_back(candidate(0, kAdd));
  // A kernel that is known to be right runs before the first batch (`sound` is false), and after a batch in which no
  // candidate was correct.
  for (bool sound : {false, true}) {
    const auto measured = measure_soundly(batch, device, testing::options(), &sound);
    EXPECT_TRUE(absl::IsUnavailable(measured.status())) << measured.status();
    EXPECT_THAT(measured.status().message(), HasSubstr("known to be right failed (compile_error: no disk)"));
  }
}

TEST(KnownKernel, SaysWhatToDoAboutTheFolder) {
  MeasureOptions options = testing::options();
  options.work_dir = "/proc/none";
  const absl::Status works = known_kernel_works(describe_device(), options);
  EXPECT_TRUE(absl::IsUnavailable(works));
  EXPECT_THAT(works.message(), HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace wl
