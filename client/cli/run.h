// Runs a Program in this process on given or generated inputs, and reports what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/cli/check.h"
#include "client/program/executor.h"

namespace wl {

enum class CheckBy { kAuto, kWhole, kSteps };

struct RunOptions {
  uint64_t seed = 1;
  std::map<std::string, std::string> inputs;  // by name: .npy files
  std::vector<std::string> weights;           // files or folders with arrays by input name (client/program/weights.h)
  std::string output_dir;                     // NAME.npy of every output
  bool save_inputs = false;                   // and inputs/NAME.npy beside them
  int threads = 0;
  std::string device;  // of GPU bundles: "cuda:1"; empty: the first that the kernels run on
  int repeat = 0;
  bool profile = false;  // `repeat` more runs, each step timed
  bool check = false;
  CheckBy check_by = CheckBy::kAuto;  // auto: by steps where the oracle of the whole would take long
};

struct RunResult {
  int threads = 1;             // 0: on a GPU
  std::string device = "cpu";  // or "cuda:0"
  std::vector<OutputCheck> checks;
  bool by_steps = false;
  bool composed = false;                       // by steps: the steps together are the graph, proven by simplification
  std::vector<int64_t> samples_ns;             // one per repeat, of the whole program
  std::vector<std::vector<int64_t>> steps_ns;  // of every step, one per repeat; with `profile`
  std::vector<std::string> given;              // inputs that came from files
  bool correct() const;
};

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options);

}  // namespace wl
