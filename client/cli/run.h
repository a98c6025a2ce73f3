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

// Where the values of a program's inputs and weights come from.
struct ValueOptions {
  uint64_t seed = 1;                          // seed of the random values of those that no file gives
  std::map<std::string, std::string> inputs;  // for each name of an input, the path of its .npy file
  std::vector<std::string> weights;  // files or folders with the weights, as client/program/weights.h reads them
};

struct RunOptions {
  ValueOptions values;
  std::string output_dir;    // folder in which NAME.npy of every output is written; empty: none
  bool save_inputs = false;  // whether the inputs are written too, to inputs/NAME.npy in output_dir
  int threads = 0;
  // The name of the GPU for a GPU's bundle, such as "cuda:1"; empty: the first device that runs the kernels.
  std::string device;
  int repeat = 0;
  bool profile = false;  // whether to time each step of the program, in `repeat` further runs
  bool check = false;
  // kAuto: the check is by steps if the oracle of the whole graph would take long.
  CheckBy check_by = CheckBy::kAuto;
};

struct RunResult {
  int threads = 1;             // number of CPU threads; 0 if the kernels ran on a GPU
  std::string device = "cpu";  // "cpu", or the name of a GPU such as "cuda:0"
  std::vector<OutputCheck> checks;
  bool by_steps = false;
  // In a check by steps: whether simplification proves that the steps together compute the graph.
  bool composed = false;
  std::vector<int64_t> samples_ns;  // times of the whole program in ns, one for each repeat
  // For each step, its times in ns, one for each repeat; empty without --profile.
  std::vector<std::vector<int64_t>> steps_ns;
  std::vector<std::string> given;      // names of the inputs that came from files
  std::vector<std::string> generated;  // names of the weights, followed by those of the inputs, that got random values
  bool correct() const;
};

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options);

// Fills every input of an executor: from the file that the options name for it, else with generated values. Sets
// `given` and `generated` of the result. InvalidArgument: a file is wrong, or inputs are given but not all weights.
absl::Status fill_inputs(Executor& executor, const ValueOptions& options, RunResult& result);

}  // namespace wl
