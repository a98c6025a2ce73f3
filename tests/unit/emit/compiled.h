// Printed kernels as a machine meets them: compiled by the real compilers, loaded, run on two threads in memory with
// red zones, and compared with the double-precision oracle at every output element. Kernels are collected first and
// compiled together, many to a translation unit.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/eval.h"
#include "compiler/target/target.h"

namespace wl::testing {

// A row of kTargets with two threads and every compiler that this machine has.
Machine machine_named(std::string_view target);
// Rows of kTargets of the CPU family that this machine can run.
std::vector<std::string> runnable_targets();

// "" when `got` is what the oracle expects.
std::string difference(double got, const Value& want);

class CompiledChecks {
 public:
  // `folder` (below the test's temporary folder) receives the objects.
  explicit CompiledChecks(std::string folder) : folder_(std::move(folder)) {}

  // A group whose kernels follow; its inputs are generated from `seed`. Fails when the oracle does.
  absl::StatusOr<int> group(const Graph& graph, uint64_t seed = 7);
  // One kernel of the group; `plan` is shown when it is wrong. Equal sources are run once.
  void add(int group, Source source, std::string plan);
  int kernels() const { return static_cast<int>(cases_.size()); }

  // Compiles and runs everything added: one message for every kernel that is not right. Seconds spent compiling and
  // running go to standard output.
  std::vector<std::string> run();

 private:
  struct Problem {
    Graph graph;
    std::vector<BufferSpec> buffers;
    std::vector<std::vector<Value>> expected;  // per output
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
