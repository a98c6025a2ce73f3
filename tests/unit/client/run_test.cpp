#include "client/cli/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "client/cli/compose.h"
#include "compiler/ir/text.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using testing::HasSubstr;
using RunTest = ProgramsTest;

constexpr char kRight[] = "y[i] = x[i] + w[i];";

TEST_F(RunTest, ComputesChecksAndTimes) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  RunOptions options;
  options.check = true;
  options.repeat = 4;
  options.profile = true;
  options.output_dir = root_ + "/out";
  options.save_inputs = true;
  auto result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->correct());
  EXPECT_FALSE(result->by_steps) << "small enough for the whole";
  ASSERT_EQ(result->checks.size(), 1u);
  EXPECT_GT(result->checks[0].samples, 30);
  EXPECT_GT(result->checks[0].bound, 0);
  EXPECT_EQ(result->samples_ns.size(), 4u);
  ASSERT_EQ(result->steps_ns.size(), program.steps.size());
  for (const std::vector<int64_t>& step : result->steps_ns) EXPECT_EQ(step.size(), 4u);

  // The inputs that a run saved can be passed to another run, which gives the same result.
  auto y = parse_npy(read_file(root_ + "/out/y.npy").value(), "y");
  options.values.inputs = {{"x", root_ + "/out/inputs/x.npy"}, {"w", root_ + "/out/inputs/w.npy"}};
  options.values.seed = 99;
  auto again = run_program(program, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->correct());
  EXPECT_EQ(again->given, (std::vector<std::string>{"w", "x"}));
  EXPECT_EQ(parse_npy(read_file(root_ + "/out/y.npy").value(), "y")->bytes, y->bytes);

  // The saved inputs can also be passed as a folder of weights.
  options.values.inputs.clear();
  options.values.weights = {root_ + "/out/inputs"};
  again = run_program(program, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->given, (std::vector<std::string>{"w", "x"}));
  EXPECT_EQ(parse_npy(read_file(root_ + "/out/y.npy").value(), "y")->bytes, y->bytes);
}

TEST_F(RunTest, FindsWhatIsWrongAndWhatNobodyWrote) {
  for (const char* body : {"y[i] = x[i] + w[i] + 0.001f;", "if (i < 31) y[i] = x[i] + w[i];"}) {
    for (CheckBy by : {CheckBy::kWhole, CheckBy::kSteps}) {
      Program program = program_of(body);
      NEEDS_COMPILER(program);
      RunOptions options;
      options.check = true;
      options.check_by = by;
      auto result = run_program(program, options);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_FALSE(result->correct()) << body;
    }
  }
}

TEST_F(RunTest, ChecksEveryStepOnWhatItRead) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  RunOptions options;
  options.check = true;
  options.check_by = CheckBy::kSteps;
  auto result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->by_steps);
  EXPECT_TRUE(result->composed);
  EXPECT_TRUE(result->correct());
  ASSERT_EQ(result->checks.size(), 2u);
  EXPECT_EQ(result->checks[1].step, 1);
  EXPECT_EQ(result->checks[1].name, "y");
  EXPECT_GT(result->checks[1].samples, 30);

  // The first step is wrong and the second one is right. The second step must not be blamed.
  program.kernels.push_back(program_of("y[i] = x[i] + 2 * w[i];").kernels[0]);
  program.steps[0].kernel = 1;
  result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->checks[0].wrong, 0);
  EXPECT_EQ(result->checks[1].wrong, 0);
}

TEST_F(RunTest, KnowsWhetherTheStepsAreTheGraph) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  const Graph whole = parse(program.graph_text).value();
  EXPECT_TRUE(steps_make(program, whole).value());
  // Every step is right for its inputs, but together the steps do not compute the graph: the second step reads x, not
  // the intermediate.
  program.steps[1].args[0] = 0;
  EXPECT_FALSE(steps_make(program, whole).value());
  program.steps[0].args[0] = 2;
  EXPECT_THAT(std::string(steps_make(program, whole).status().message()),
              HasSubstr("reads a value that no earlier step"));
}

TEST_F(RunTest, CountsItsMemory) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  const MemoryUse memory = memory_of(program);
  EXPECT_EQ(memory.inputs, 6 * 32 * 4 + 32 * 4);
  EXPECT_EQ(memory.outputs, 6 * 32 * 4);
  EXPECT_EQ(memory.intermediates, 6 * 32 * 4);
  EXPECT_EQ(memory.live, 6 * 32 * 4);
  EXPECT_GE(memory.arena, memory.live);
}

TEST_F(RunTest, MakesUpNoWeightsBesideRealInputs) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  RunOptions options;
  auto result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->generated, (std::vector<std::string>{"w", "x"}));
  const std::string x = npy_bytes(DType::f32, {6, 32}, std::string(6 * 32 * 4, '\0'));
  ASSERT_TRUE(write_file(root_ + "/x.npy", x).ok());
  options.values.inputs = {{"x", root_ + "/x.npy"}};
  EXPECT_EQ(run_program(program, options).status().message(),
            "weight w has no value; where an --input is given, weights are not made up: give them with --weights FILE");

  // The bundle contains the values of small weights, so the files passed as weights need not contain them.
  for (ProgramBuffer& buffer : program.buffers)
    if (buffer.name == "w") buffer.fill.literal.assign(static_cast<size_t>(elements(buffer.shape)), 1);
  std::filesystem::create_directory(root_ + "/weights");
  ASSERT_TRUE(write_file(root_ + "/weights/other.npy", x).ok());
  options.values.weights = {root_ + "/weights"};
  result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->generated.empty());
}

TEST_F(RunTest, SaysWhichInputDoesNotFit) {
  Program program = program_of(kRight);
  NEEDS_COMPILER(program);
  ASSERT_TRUE(write_file(root_ + "/x.npy", npy_bytes(DType::f32, {2}, std::string(8, '\0'))).ok());
  RunOptions options;
  options.values.inputs = {{"x", root_ + "/x.npy"}};
  EXPECT_EQ(run_program(program, options).status().message(),
            "input x is f32[6,32], the given array is f32[2]; give one of the input's type and shape");
  options.values.inputs = {{"q", root_ + "/x.npy"}};
  EXPECT_EQ(run_program(program, options).status().message(), "no input is named q; the inputs are x, w");
  options.values.inputs.clear();
  std::filesystem::create_directory(root_ + "/weights");
  ASSERT_TRUE(write_file(root_ + "/weights/v.npy", npy_bytes(DType::f32, {2}, std::string(8, '\0'))).ok());
  options.values.weights = {root_ + "/weights"};
  EXPECT_THAT(std::string(run_program(program, options).status().message()), HasSubstr("bears the name of an input"));
}

}  // namespace
}  // namespace wl
