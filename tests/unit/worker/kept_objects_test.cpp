// The objects that a worker compiles for promotions are kept and used for later timings of the same kernels.
#include "worker/kept_objects.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/base/batch_id.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using testing::kAdd;

Source source_of(const std::string& text) {
  Source source;
  source.target = "cpu:generic";
  source.compiler = "gcc";
  source.text = text;
  return source;
}

TEST(KeptObjects, AreOfOneSource) {
  KeptObjects kept;
  kept.keep(source_of("text"), "object");
  ASSERT_NE(kept.find(source_of("text")), nullptr);
  EXPECT_EQ(*kept.find(source_of("text")), "object");
  EXPECT_EQ(kept.find(source_of("tex")), nullptr);
  Source other = source_of("text");
  other.compiler = "clang";
  EXPECT_EQ(kept.find(other), nullptr);
  other = source_of("text");
  other.target = "cpu:avx2";
  EXPECT_EQ(kept.find(other), nullptr);
  // Prelude "te" and text "xt" are another source than the text "text", although they are equal when they are joined.
  other = source_of("xt");
  other.prelude = "te";
  EXPECT_EQ(kept.find(other), nullptr);
}

TEST(KeptObjects, TheTimeOfCompilingIsToldOnce) {
  KeptObjects kept;
  kept.keep(source_of("a"), "object", 1.5);
  double seconds = 0;
  ASSERT_NE(kept.find(source_of("a")), nullptr);
  ASSERT_NE(kept.find(source_of("a"), &seconds), nullptr);
  EXPECT_EQ(seconds, 1.5);
  ASSERT_NE(kept.find(source_of("a"), &seconds), nullptr);
  EXPECT_EQ(seconds, 0);
}

TEST(KeptObjects, ThoseNotAskedForLongestAreForgotten) {
  KeptObjects kept(10);
  kept.keep(source_of("a"), "1234");
  kept.keep(source_of("b"), "1234");
  EXPECT_NE(kept.find(source_of("a")), nullptr);
  kept.keep(source_of("c"), "1234");
  EXPECT_EQ(kept.find(source_of("b")), nullptr);
  EXPECT_NE(kept.find(source_of("a")), nullptr);
  EXPECT_NE(kept.find(source_of("c")), nullptr);
  kept.keep(source_of("a"), "12");
  EXPECT_EQ(kept.bytes(), 6u);
  EXPECT_EQ(*kept.find(source_of("a")), "12");
  kept.keep(source_of("d"), "more than all");
  EXPECT_EQ(kept.find(source_of("d")), nullptr);
  EXPECT_EQ(kept.bytes(), 6u);
}

TEST(KeptObjects, AreFilesBesideWhatIsCompiled) {
  const Scratch scratch;
  KeptObjects kept;
  kept.keep(source_of("a"), "bytes");
  std::vector<Candidate> candidates(3);
  for (size_t i = 0; i < 3; ++i) candidates[i].source = source_of(i == 1 ? "a" : "b");
  const auto objects = kept.provide(candidates, scratch.path(""), [](const std::vector<Candidate>& missing) {
    std::vector<Compiled> out(missing.size());
    for (Compiled& one : out) one.message = "not compiled";
    return absl::StatusOr<std::vector<Compiled>>(out);
  });
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ((*objects)[0].message, "not compiled");
  EXPECT_EQ((*objects)[2].message, "not compiled");
  EXPECT_EQ((*objects)[1].outcome, Outcome::kCorrect);
  const auto bytes = PrivateFolder::read((*objects)[1].object);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "bytes");
  EXPECT_FALSE(kept.provide(candidates, scratch.path("none/such"),
                            [](const auto& missing) {
                              return absl::StatusOr<std::vector<Compiled>>(std::vector<Compiled>(missing.size()));
                            })
                   .ok());
}

// A kernel is compiled for its first promotion. Neither its second promotion nor a chain that contains it compiles it
// again.
TEST(KeptObjects, APromotedKernelIsNotCompiledAgain) {
  constexpr int64_t kElements = 1024;
  ReusedState state;
  MeasureOptions options = testing::options();
  options.state = &state;
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd)};
  batch.id = batch_id(1, 0, 0);
  absl::StatusOr<Measured> measured = measure(batch, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  // An object of a search round is not kept, since its translation unit may contain other kernels as well.
  EXPECT_EQ(state.objects.bytes(), 0u);

  batch.id = batch_id(1, 1, 0);
  batch.phase = 1;
  batch.keep_objects = true;
  for (int time = 0; time < 2; ++time) {
    measured = measure(batch, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(measured->trials[0].compile_s > 0, time == 0);  // the second promotion uses the object of the first
    EXPECT_EQ(measured->objects.at(0).size(), state.objects.bytes());
  }

  batch.keep_objects = false;
  batch.checks.clear();
  batch.recipe.interleave = true;
  batch.candidates.push_back(candidate(1, kAdd));
  batch.chains = {{0, "promoted", {kElements * 4}, {{0, {0, 1, 3}}, {0, {3, 1, 2}}}}, {1, "new", {}, {{1, {0, 1, 2}}}}};
  measured = measure(batch, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->trials.size(), 2u);
  for (const Trial& trial : measured->trials) EXPECT_EQ(trial.outcome, Outcome::kCorrect) << trial.message;
  EXPECT_EQ(measured->trials[0].compile_s, 0);
  EXPECT_GT(measured->trials[1].compile_s, 0);
}

// The kernels of several batches are compiled together; those that fail are left to their own batch.
TEST(CompileAhead, KeepsTheKernelsOfAllBatches) {
  const Scratch scratch;
  std::vector<Batch> batches;
  for (int value = 0; value < 4; ++value) {
    Batch& batch = batches.emplace_back();
    batch.phase = 1;
    batch.keep_objects = value != 1;
    batch.candidates.emplace_back().source = source_of(
        value == 3 ? "this is no C++" : absl::StrCat("extern \"C\" int wl_value() { return ", value, "; }\n"));
  }
  ReusedState state;
  MeasureOptions options;
  options.work_dir = scratch.path("");
  options.state = &state;
  compile_ahead({&batches[0], &batches[1], &batches[2], &batches[3]}, options, [](int) {});
  const auto is_kept = [&](int of) { return state.objects.find(batches[of].candidates[0].source) != nullptr; };
  EXPECT_TRUE(is_kept(0));
  EXPECT_FALSE(is_kept(1)) << "a round's objects are not kept";
  EXPECT_TRUE(is_kept(2));
  EXPECT_FALSE(is_kept(3));
  double seconds = 0;
  EXPECT_NE(state.objects.find(batches[0].candidates[0].source, &seconds), nullptr);
  EXPECT_GT(seconds, 0);
}

}  // namespace
}  // namespace wl
