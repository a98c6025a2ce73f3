#include <gtest/gtest.h>

#include <set>

#include "client/cli/batch/batch_file.h"
#include "client/cli/batch/request_id.h"

namespace wl {
namespace {

absl::StatusOr<BatchFile> batch_of(const std::string& text) {
  return parse_batch(text, "jobs/nightly.toml");
}

TEST(BatchFile, MakesARunOfEveryModelAndTarget) {
  const auto batch = batch_of(R"(
out = "bundles"
trials = 64
effort = "quick"
[[model]]
file = "bert.onnx"
bind = { batch = [1, 8], n = 64 }
targets = ["cpu:avx2", "cuda:sm_90a"]
[[model]]
file = "/models/resnet.onnx"
name = "vision"
trials = 8
budget = "5m"
measure = "cold"
at_once = 1
retune = true
)");
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->out, "jobs/bundles");
  ASSERT_EQ(batch->runs.size(), 3u);
  const BatchRun& first = batch->runs[0];
  EXPECT_EQ(first.name, "bert/cpu-avx2");
  EXPECT_EQ(first.file, "jobs/bert.onnx");
  EXPECT_EQ(first.out, "jobs/bundles/bert/cpu-avx2");
  EXPECT_EQ(first.bind, (std::map<std::string, std::vector<int64_t>>{{"batch", {1, 8}}, {"n", {64}}}));
  EXPECT_EQ(first.options.target, "cpu:avx2");
  EXPECT_EQ(first.options.trials, 64);
  EXPECT_EQ(first.options.effort, "quick");
  EXPECT_EQ(batch->runs[1].name, "bert/cuda-sm_90a");
  EXPECT_EQ(batch->runs[1].options.target, "cuda:sm_90a");
  const BatchRun& last = batch->runs[2];
  EXPECT_EQ(last.name, "vision/cpu");
  EXPECT_EQ(last.file, "/models/resnet.onnx");
  EXPECT_EQ(last.options.trials, 8);
  EXPECT_EQ(last.options.budget_s, 300);
  EXPECT_TRUE(last.options.cold);
  EXPECT_EQ(last.options.at_once, 1);
  EXPECT_TRUE(last.options.retune);
}

TEST(BatchFile, MistakesNameTheirLine) {
  const std::string model = "out = \"b\"\n[[model]]\nfile = \"m.onnx\"\n";
  const struct {
    std::string text;
    std::string says;
  } rows[] = {
      {"", "no key \"out\""},
      {"out = \"b\"\n", "no model; expected [[model]]"},
      {"out = \"b\"\nmodel = 3\n", "no model"},
      {"out = \"b\"\nmodel = [3]\n", "line 2: model: expected [[model]]"},
      {"out = 1\n", "line 1: out: expected a text"},
      {"out = \"b\"\nfile = \"m\"\n",
       "line 2: unknown key \"file\" outside [[model]]; expected one of out, model, targets"},
      {"out = \"b\n", "line 1: "},
      {"out = \"b\"\n[[model]]\nname = \"m\"\n", "line 2: model: no key \"file\""},
      {model + "trails = 3\n",
       "line 4: unknown key \"trails\" of a model (did you mean trials?); expected one of file, name, bind"},
      {model + "trials = 0\n", "line 4: trials: expected a whole number from 1 to 1000000"},
      {model + "trials = 1.5\n", "line 4: trials: expected a whole number"},
      {model + "budget = 5\n", "line 4: budget: expected a text such as"},
      {model + "budget = \"soon\"\n", "line 4: budget: expected a time"},
      {model + "effort = \"heroic\"\n", "line 4: effort: expected one of \"now\", \"quick\""},
      {model + "measure = \"hot\"\n", "line 4: measure: expected one of \"warm\", \"cold\""},
      {model + "retune = 1\n", "line 4: retune: expected true or false"},
      {model + "bind = 3\n", "line 4: bind: expected extents"},
      {model + "bind = { n = [4, 4] }\n", "line 4: bind: expected extents"},
      {model + "bind = { n = -1 }\n", "line 4: bind: expected a whole number"},
      {model + "targets = []\n", "line 4: targets: expected a list"},
      {model + "targets = [\"..\"]\n", "line 4: targets: expected a list"},
      {model + "targets = [\"cpu\", \"cpu\"]\n", "line 4: targets: expected a list of targets, each once"},
      {model + "name = \"../m\"\n", "line 4: name: expected at most 128"},
      {model + "name = \"a/b\"\n", "line 4: name: expected at most 128"},
      {model + "[[model]]\nfile = \"x/m.onnx\"\n", "line 4: name: a model before it makes m/cpu too"},
  };
  for (const auto& [text, says] : rows) {
    const auto batch = batch_of(text);
    ASSERT_FALSE(batch.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(batch.status()));
    EXPECT_EQ(batch.status().message().find("jobs/nightly.toml"), 0u) << batch.status();
    EXPECT_NE(batch.status().message().find(says), std::string::npos) << text << "\n" << batch.status();
  }
}

Device made_up_device() {
  Device device;
  device.target = "cpu:avx2";
  device.name = "made up";
  device.threads = 2;
  return device;
}

std::string request_with(const TuneOptions& options, int again = 0) {
  return batch_request_id("0123456789abcdef", "bert/cpu", "graph {}", options, again);
}

// A batch that an older version began finds its jobs by these request ids, so the ids must not change.
TEST(BatchRequest, KeepsItsId) {
  EXPECT_EQ(request_with({}), "39c8d17f-0acc-40e8-fc80-cdf0b461348b");
  TuneOptions options;
  options.target = "cpu:avx2";
  options.trials = 64;
  options.budget_s = 300;
  options.seed = 7;
  options.strategy = "genetic";
  options.effort = "quick";
  options.cover = "planned";
  options.cold = true;
  options.retune = true;
  options.at_once = 1;
  options.kernels_alone = true;
  options.libraries = "onednn";
  options.device = made_up_device();
  EXPECT_EQ(request_with(options, /*again=*/2), "3956eb78-7a2b-4e9e-a4c2-f8e3ebd7a4e5");
}

TEST(BatchRequest, DiffersWhereAnyOptionDoes) {
  TuneOptions options;
  // The binding has a name for every field, so this does not compile when TuneOptions gets another field.
  auto& [target, trials, budget_s, seed, strategy, effort, cover, cold, require_cached, retune, at_once, kernels_alone,
         background, libraries, device] = options;
  std::set<std::string> ids = {request_with(options), request_with(options, /*again=*/1)};
  const auto change = [&ids, &options](auto& field, const auto& value) {
    const auto before = field;
    field = value;
    EXPECT_TRUE(ids.insert(request_with(options)).second) << "of two requests that differ in " << value;
    field = before;
  };
  change(target, "cpu:avx2");
  change(trials, 8);
  change(budget_s, 8.5);
  change(seed, 9);
  change(strategy, "random");
  change(effort, "quick");
  change(cover, "greedy");
  change(cold, true);
  change(require_cached, true);
  change(retune, true);
  change(at_once, 10);
  change(kernels_alone, true);
  change(background, true);
  change(libraries, "onednn");
  device = made_up_device();
  EXPECT_TRUE(ids.insert(request_with(options)).second);
}

}  // namespace
}  // namespace wl
