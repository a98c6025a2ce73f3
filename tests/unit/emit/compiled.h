// Runs printed kernels on this machine: compiled by the real compilers, loaded, run on two threads in memory with red
// zones, and compared with the double-precision oracle at every output element. Kernels are collected first and
// compiled together, many in one translation unit.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/eval.h"
#include "compiler/target/target.h"
#include "tests/unit/ir/outputs.h"

namespace wl::testing {

// Returns a machine for a row of kTargets, with two threads and every compiler that is installed here.
Machine machine_named(std::string_view target);
// Returns the names of the CPU targets in kTargets that this machine can run.
std::vector<std::string> runnable_targets();

// Compares an output in memory with the oracle's values. Returns "" if all elements are written and correct, otherwise
// the number of wrong or missing elements and the first of them.
std::string difference_of_output(const BufferSpec& spec, const void* data, const std::vector<Value>& expected);

class CompiledChecks {
 public:
  // The objects are written to `folder`, below the test's temporary folder.
  explicit CompiledChecks(std::string folder) : folder_(std::move(folder)) {}

  // Adds a group and returns its number for add(). The group's inputs are generated from `seed`. Fails if the oracle
  // fails.
  absl::StatusOr<int> group(const Graph& graph, uint64_t seed = 7);
  // Adds a kernel of a group. If the kernel is wrong, `plan` is shown. Kernels of equal source run only once.
  void add(int group, Source source, std::string plan);
  int kernels() const { return static_cast<int>(cases_.size()); }

  // Compiles and runs all kernels. Returns one message for every wrong kernel. Prints the seconds spent compiling and
  // running.
  std::vector<std::string> run();
  // Expects that run() returns no message, and shows the first few messages otherwise.
  void expect_right();

 private:
  struct Problem {
    Graph graph;
    std::vector<BufferSpec> buffers;
    std::vector<std::vector<Value>> expected;  // expected values, one list for each output
    uint64_t seed = 0;
  };
  struct Case {
    int problem = 0;
    Candidate candidate;
  };
  std::string run_group(int problem, const std::vector<std::pair<const Case*, std::string>>& objects,
                        std::vector<std::string>& wrong);

  std::string folder_;
  std::deque<Problem> problems_;
  std::deque<Case> cases_;
  std::map<std::pair<int, std::string>, int> seen_;
};

}  // namespace wl::testing
