// Small programs with real kernels, for tests. Each test has a temporary folder and needs the machine's C compiler.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "client/program/files.h"
#include "client/program/program.h"
#include "compiler/ir/text.h"
#include "tests/unit/scratch.h"

namespace wl {

class ProgramsTest : public testing::Test {
 protected:
  // Returns a program for y = (x + w) + w over rows of 32, as two calls of one kernel: the first call stores an
  // intermediate, which the second call reads. `body` is the kernel's inner statement, over float *x, *w, *y and long
  // i. Without a C compiler the program has no steps.
  Program program_of(const std::string& body, int64_t rows = 6) {
    const std::string stem = root_ + "/k" + std::to_string(++number_), source = stem + ".c", object = stem + ".so";
    EXPECT_TRUE(write_file(source,
                           "void wl_k(long block, void* const* args, char* scratch) {\n"
                           "  float* x = (float*)args[0] + block * 32; float* w = (float*)args[1];\n"
                           "  float* y = (float*)args[2] + block * 32;\n"
                           "  scratch[0] = 0;\n  for (long i = 0; i < 32; ++i) {" +
                               body + "}\n}\n")
                    .ok());
    if (std::system(cat("cc -shared -fPIC -o ", object, " ", source).c_str()) != 0) return {};
    const std::string shape = cat("f32[", rows, ",32]");
    const auto graph = [&](const char* x, const char* w, const std::string& rest) {
      return cat("graph {\n  %0 = input \"", x, "\" : ", shape, " normal(0,1)\n  %1 = input \"", w,
                 "\" : f32[32] normal(0,1)\n  %2 = broadcast %1 dims=[1] : ", shape, "\n  %3 = add %0 %2 : ", shape,
                 "\n", rest, "}\n");
    };
    Program program;
    program.graph_text = graph("x", "w", cat("  %4 = add %3 %2 : ", shape, "\n  output \"y\" %4\n"));
    program.graph_hash = graph_hash(parse(program.graph_text).value());
    program.target = "cpu:avx2";
    program.weights = {"w"};
    program.bind = {{"rows", rows}};
    const auto buffer = [](const char* label, Shape extents, Place place) {
      return ProgramBuffer{label, DType::f32, std::move(extents), place, 0, {}, 0};
    };
    program.buffers = {buffer("x", {rows, 32}, Place::kInput), buffer("w", {32}, Place::kInput),
                       buffer("t", {rows, 32}, Place::kArena), buffer("y", {rows, 32}, Place::kOutput)};
    program.buffers[1].stream = 1;
    program.outputs = {{"y", 3}};
    ProgramKernel kernel;
    kernel.source.entry = "wl_k";
    kernel.source.grid = rows;
    kernel.source.threads = 2;
    kernel.source.scratch_bytes = 64;
    kernel.inputs = 2;
    kernel.outputs = 1;
    kernel.graph = graph("i0", "i1", "  output \"o0\" %3\n");
    kernel.object_path = object;
    kernel.object = read_file(object).value();
    program.kernels = {kernel};
    program.steps = {{0, {0, 1, 2}}, {0, {2, 1, 3}}};
    EXPECT_TRUE(lay_out(program).ok());
    return program;
  }

  const Scratch scratch_;
  const std::string root_ = scratch_.folder();
  int number_ = 0;
};

// Skips a test if there is no C compiler.
#define NEEDS_COMPILER(program) \
  if ((program).steps.empty()) GTEST_SKIP() << "no C compiler on this machine"

}  // namespace wl
