#include "tests/simulated/by_hand.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/base/fill.h"
#include "compiler/emit/emit.h"
#include "compiler/kernel/verify.h"
#include "runtime/runtime.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl::testing {
namespace {

std::vector<std::vector<double>> arguments_of(const Kernel& kernel) {
  std::vector<std::vector<double>> out;
  for (const KernelBuffer& buffer : kernel.buffers) {
    if (buffer.level != Level::kGlobal) continue;
    std::vector<double>& values = out.emplace_back(elements(buffer.shape), std::nan(""));
    for (size_t i = 0; i < values.size() && !buffer.output; ++i) values[i] = static_cast<double>(i);
  }
  return out;
}

// Returns "" if the simulator's results are those of the interpreter, else the simulator's error or the first
// difference.
std::string judge(const Kernel& kernel, const Source& source, const std::string& path) {
  std::vector<std::vector<double>> expected = arguments_of(kernel);
  if (const absl::Status status = interpret(kernel, expected); !status.ok()) return status.ToString();
  std::vector<Buffer> buffers;
  std::vector<void*> args;
  const std::vector<std::vector<double>> given = arguments_of(kernel);
  for (size_t b = 0; b < given.size(); ++b) {
    const DType dtype = kernel.buffers[b].dtype;
    const auto size = static_cast<int64_t>(given[b].size());
    buffers.push_back(std::move(Buffer::create(size * size_of(dtype), 0).value()));
    args.push_back(buffers.back().data());
    if (kernel.buffers[b].output) poison(dtype, args.back(), size);
    for (int64_t i = 0; i < size && !kernel.buffers[b].output; ++i) store_element(dtype, args.back(), i, given[b][i]);
  }
  if (std::string message = run_simulated(path, source, args); !message.empty()) return message;
  for (size_t b = 0; b < given.size(); ++b)
    for (size_t i = 0; i < given[b].size() && kernel.buffers[b].output; ++i) {
      const double got = load_element(kernel.buffers[b].dtype, args[b], i);
      if (got != expected[b][i])
        return cat("element ", i, " of ", kernel.buffers[b].name, " is ", got, ", expected ", expected[b][i]);
    }
  return "";
}

}  // namespace

Kernel kernel_by_hand(const std::string& target, int team, int teams, int64_t grid, DType dtype, int64_t inputs,
                      int64_t outputs) {
  Kernel kernel;
  kernel.name = "by_hand";
  kernel.target = target;
  kernel.buffers.push_back({"x", dtype, {inputs}, Level::kGlobal, false, false, 0});
  kernel.buffers.push_back({"y", dtype, {outputs}, Level::kGlobal, true, true, 0});
  kernel.vars.push_back({Var::Kind::kBlock, "block", {}, 1, 0});
  kernel.vars.push_back({Var::Kind::kTeam, "team", {}, 1, 0});
  kernel.grid = grid;
  kernel.wave = machine_named(target).target->gpu.wave;
  kernel.team = team;
  kernel.teams = teams;
  kernel.threads = team * teams;
  return kernel;
}

std::vector<std::string> simulated_differences(const std::vector<Kernel>& kernels, const ChangeText& change) {
  std::vector<std::string> out(kernels.size());
  std::vector<Candidate> candidates;
  std::vector<size_t> numbers;  // for each candidate, the index of its kernel in `kernels`
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto source = emit(kernels[i], machine_named(kernels[i].target));
    if (!source.ok()) {
      out[i] = cat(source.status().ToString(), "\n", print(kernels[i]));
      continue;
    }
    if (change) source->text = change(i, source->text);
    candidates.push_back({static_cast<int64_t>(candidates.size()), "", *std::move(source)});
    numbers.push_back(i);
  }
  const Scratch scratch;
  CompileOptions options;
  options.folder = scratch.folder();
  options.unit = 24;
  options.deadline_ns = 300'000'000'000;
  const auto compiled = compile_cpu(candidates, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; compiled.ok() && i < candidates.size(); ++i) {
    const Compiled& one = (*compiled)[i];
    const Kernel& kernel = kernels[numbers[i]];
    const std::string message = one.outcome == Outcome::kCorrect ? judge(kernel, candidates[i].source, one.object)
                                                                 : cat("does not compile: ", one.message);
    if (!message.empty()) out[numbers[i]] = cat(message, "\n", print(kernel), candidates[i].source.text);
  }
  return out;
}

}  // namespace wl::testing
