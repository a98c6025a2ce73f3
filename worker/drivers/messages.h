// The commands of a runner and its answers. They contain no expected values: the runner executes untrusted code, so the
// worker reads elements after a run and judges them itself. A slot is the number under which a candidate or chain is
// loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// Allocates the arguments of a problem, in place of those of an earlier problem, and fills the inputs. The answer is
// empty.
struct SetupCommand {
  std::vector<BufferSpec> buffers;
  uint64_t seed = 0;
  bool cold = false;
  int threads = 1;
  int64_t cache_bytes = 0;  // bytes of the last-level cache; the copies of the arguments for cold runs must exceed it
  std::string trace;        // trace id of the job that candidates are measured for; empty: unknown
  int64_t arena_bytes = 0;  // bytes of memory for the intermediate values of chains; CPUs only
  int64_t cpu_s = 3600;     // seconds of CPU time that all candidates together may take in each thread; CPUs only
  bool libraries = false;   // whether candidates may call libraries that generate code at run time; CPUs only
};

// Loads a candidate as `slot`. The answer is empty.
struct LoadCommand {
  int64_t slot = 0;
  std::string object;  // for a CPU, the path of a shared object; for a GPU, the bytes of the code itself
  std::string entry;
  int64_t grid = 1;
  int threads = 1;
  int64_t scratch_bytes = 0;
  int passes = 1;
  int64_t work_bytes = 0;
  std::string library = {};  // the library that the candidate calls, as in Source::library; empty: none
};

// Combines loaded candidates to a chain that is checked and timed as `slot`. The answer is empty. CPUs only.
struct ChainCommand {
  struct Argument {
    // index of the problem's buffer that the argument is; -1: the argument lies in the memory for intermediate values
    int64_t buffer = -1;
    int64_t offset = 0;  // if `buffer` is -1: the argument's offset in bytes in that memory
  };
  struct Step {
    int64_t slot = 0;
    std::vector<Argument> arguments;
  };
  int64_t slot = 0;
  std::vector<Step> steps;
};

// Fills the outputs with poison (values that kernels do not produce), runs the candidate once, and looks for elements
// that still contain poison. Unless `thorough`, a CPU session does so only on some pages of large outputs: that still
// shows elements that a kernel leaves out systematically, with much less memory traffic.
struct CheckCommand {
  int64_t slot = 0;
  bool thorough = false;
};
struct CheckAnswer {
  std::string damage;  // describes a write outside the outputs; empty: none was found
  struct Unwritten {
    int64_t buffer = 0, elements = 0, first = 0;
  };
  // The outputs that still contain poison, with the number of such elements and the first one's index.
  std::vector<Unwritten> unwritten;
};

// Reads elements of the buffers after the last run.
struct PeekCommand {
  struct Place {
    int64_t buffer = 0, index = 0;
  };
  std::vector<Place> places;
};
struct PeekAnswer {
  std::vector<double> values;  // for each requested place, the value of the element
};

// Fills the outputs with poison, then times one slot, or several in interleaved rounds.
struct TimeCommand {
  std::vector<int64_t> slots;
  Recipe recipe;
};
struct Samples {
  std::vector<int64_t> samples_ns;
  bool hopeless = false;
  // For each sample, the clock in MHz of the GPU's multiprocessors right after it; empty: the clocks are not known.
  std::vector<int> clocks_mhz = {};
};
struct TimeAnswer {
  std::vector<Samples> slots;
  std::string damage;
};

// Times of two fixed kernels, which show whether the machine is still as fast as before. On a GPU, their results are
// checked as well; Internal: the results are wrong.
struct CanaryAnswer {
  int64_t compute_ns = 0, copy_ns = 0;
};

// Compiles GPU kernels to machine code, in a runner without a device. All sources have the same target and prelude.
// InvalidArgument: the compiler's errors.
struct CompileCommand {
  std::string folder;  // folder for intermediate files; empty: the runner's /tmp, which is emptied afterwards
  std::vector<Source> sources;
};
struct CompileAnswer {
  std::string binary;
  std::vector<CodeFacts> kernels;  // for each source, the facts about its kernel's code
  double seconds = 0;
};

// The GPUs that the drivers of this machine show. A runner looks for them and not the worker itself, since a driver may
// hang.
struct DescribeAnswer {
  struct Found {
    std::string name;  // name of the GPU, e.g. "cuda:0"
    Device device;
  };
  std::vector<Found> found;
  std::vector<std::string> missing;  // for each API without a GPU, a message: "CUDA: no libcuda.so.1 ..."
};

// Progress of a long command: the slot that runs (-1: none), and a counter that increases with every report.
struct ProgressNote {
  int64_t slot = 0, counter = 0;
};

// A line for the worker's log. Any number of them may come before an answer.
struct LogNote {
  std::string text, trace;  // the line, and the trace id that the last SetupCommand had
};

std::string pack(const SetupCommand& message);
std::string pack(const LoadCommand& message);
std::string pack(const ChainCommand& message);
std::string pack(const CheckCommand& message);
std::string pack(const CheckAnswer& message);
std::string pack(const PeekCommand& message);
std::string pack(const PeekAnswer& message);
std::string pack(const TimeCommand& message);
std::string pack(const TimeAnswer& message);
std::string pack(const CanaryAnswer& message);
std::string pack(const CompileCommand& message);
std::string pack(const CompileAnswer& message);
std::string pack(const DescribeAnswer& message);
std::string pack(const ProgressNote& message);
std::string pack(const LogNote& message);

// Unpacks one message. DataLoss: the bytes are not exactly one such message.
template <typename Message>
absl::StatusOr<Message> unpack(const std::string& bytes);

}  // namespace wl
