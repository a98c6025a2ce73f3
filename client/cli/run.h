// Runs a Program in this process on given or generated inputs, and reports the results.
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
  std::map<std::string, std::string> inputs;  // paths of .npy files, by name of the input
  std::vector<std::string> weights;           // files or folders with arrays, by name of the input
                                              // (client/program/weights.h)
  std::string output_dir;                     // folder that receives NAME.npy of every output
  bool save_inputs = false;                   // whether inputs/NAME.npy is also written to output_dir
  int threads = 0;
  std::string device;  // for GPU bundles: "cuda:1"; empty: the first device that runs the kernels
  int repeat = 0;
  bool profile = false;  // whether to time each step in `repeat` more runs
  bool check = false;
  CheckBy check_by = CheckBy::kAuto;  // kAuto: check by steps if the oracle of the whole graph would take long
};

struct RunResult {
  int threads = 1;             // number of CPU threads; 0 if the kernels ran on a GPU
  std::string device = "cpu";  // "cpu", or the name of a GPU such as "cuda:0"
  std::vector<OutputCheck> checks;
  bool by_steps = false;
  bool composed = false;                       // by steps: whether simplification proves that the steps together
                                               // compute the graph
  std::vector<int64_t> samples_ns;             // times of the whole program, one per repeat
  std::vector<std::vector<int64_t>> steps_ns;  // times of every step, one per repeat; filled with --profile
  std::vector<std::string> given;              // names of the inputs that came from files
  std::vector<std::string> generated;          // names of weights, followed by those of inputs, that got random values
  bool correct() const;
};

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options);

// Fills every input of an executor: from the file that the options name for it, else with generated values. Sets
// `given` and `generated` of the result. InvalidArgument: a file is wrong, or inputs are given but not all weights.
absl::Status fill_inputs(Executor& executor, const RunOptions& options, RunResult& result);

}  // namespace wl
