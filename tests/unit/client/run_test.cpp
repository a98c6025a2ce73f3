#include "client/run.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "client/files.h"

namespace wl {
namespace {
namespace fs = std::filesystem;

// y = (x + 1) + 1 in two kernels with an intermediate between them; each block does one row.
constexpr const char* kGraph = R"(graph {
  %0 = input "x" : f32[6,32] normal(0,1)
  %1 = constant 1 : f32[6,32]
  %2 = add %0 %1 : f32[6,32]
  %3 = add %2 %1 : f32[6,32]
  output "y" %3
}
)";

class RunTest : public testing::Test {
 protected:
  RunTest() {
    std::string name = (fs::temp_directory_path() / "warploom-run-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~RunTest() override { fs::remove_all(root_); }

  // The program with `body` as the kernel's inner statement, over float* x, float* y and long i.
  Program program_of(const std::string& body) {
    std::string source = root_ + "/k.c", object = root_ + "/k.so";
    EXPECT_TRUE(write_file(source,
                           "void wl_k(long block, void* const* args, char* scratch) {\n"
                           "  float* x = (float*)args[0] + block * 32; float* y = (float*)args[1] + block * 32;\n"
                           "  scratch[0] = 0;\n  for (long i = 0; i < 32; ++i) {" +
                               body + "}\n}\n")
                    .ok());
    if (std::system(cat("cc -shared -fPIC -o ", object, " ", source).c_str()) != 0) return {};
    Program program;
    program.graph_text = kGraph;
    auto buffer = [](const char* label, ProgramBuffer::Place place) {
      return ProgramBuffer{label, DType::f32, {6, 32}, place, 0, {}, 0};
    };
    program.buffers = {buffer("x", ProgramBuffer::Place::kInput), buffer("t", ProgramBuffer::Place::kArena),
                       buffer("y", ProgramBuffer::Place::kOutput)};
    program.outputs = {{"y", 2}};
    ProgramKernel kernel;
    kernel.source.entry = "wl_k";
    kernel.source.grid = 6;
    kernel.source.threads = 2;
    kernel.source.scratch_bytes = 64;
    kernel.inputs = kernel.outputs = 1;
    kernel.object_path = object;
    program.kernels = {kernel};
    program.steps = {{0, {0, 1}}, {0, {1, 2}}};
    EXPECT_TRUE(lay_out(program).ok());
    return program;
  }

  std::string root_;
};

TEST_F(RunTest, ComputesChecksAndTimes) {
  Program program = program_of("y[i] = x[i] + 1;");
  if (program.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
  RunOptions options;
  options.check = true;
  options.repeat = 4;
  options.output_dir = root_ + "/out";
  options.save_inputs = true;
  auto result = run_program(program, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->correct());
  ASSERT_EQ(result->checks.size(), 1u);
  EXPECT_GT(result->checks[0].samples, 30);
  EXPECT_GT(result->checks[0].bound, 0);
  EXPECT_EQ(result->samples_ns.size(), 4u);

  // What was saved can be given again, and gives the same.
  auto y = parse_npy(read_file(root_ + "/out/y.npy").value(), "y");
  options.inputs = {{"x", root_ + "/out/inputs/x.npy"}};
  options.seed = 99;
  auto again = run_program(program, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->correct());
  EXPECT_EQ(again->given, std::vector<std::string>{"x"});
  EXPECT_EQ(parse_npy(read_file(root_ + "/out/y.npy").value(), "y")->bytes, y->bytes);
}

TEST_F(RunTest, FindsWhatIsWrongAndWhatNobodyWrote) {
  for (const char* body : {"y[i] = x[i] + 1.001f;", "if (i < 31) y[i] = x[i] + 1;"}) {
    Program program = program_of(body);
    if (program.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
    RunOptions options;
    options.check = true;
    auto result = run_program(program, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->correct()) << body;
  }
}

TEST_F(RunTest, SaysWhichInputDoesNotFit) {
  Program program = program_of("y[i] = x[i] + 1;");
  if (program.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
  ASSERT_TRUE(write_file(root_ + "/x.npy", npy_bytes(DType::f32, {2}, std::string(8, '\0'))).ok());
  RunOptions options;
  options.inputs = {{"x", root_ + "/x.npy"}};
  EXPECT_EQ(run_program(program, options).status().message(), "input x is f32[6,32], the given array is f32[2]");
  options.inputs = {{"q", root_ + "/x.npy"}};
  EXPECT_EQ(run_program(program, options).status().message(), "no input is named q; the inputs are x");
}

}  // namespace
}  // namespace wl
