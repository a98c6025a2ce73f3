// Runs a Program in this process, and compares what it computes with the oracle. No compiler, no coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/npy.h"
#include "client/program.h"
#include "runtime/runtime.h"

namespace wl {

// A Program with its kernels loaded and its memory allocated. Movable; one thread at a time.
class Executor {
 public:
  // `threads`: at most so many; 0 = what the kernels were tuned with. Errors: InvalidArgument when a kernel cannot be
  // loaded, ResourceExhausted.
  static absl::StatusOr<Executor> create(const Program& program, int threads);

  const Program& program() const { return *program_; }
  void* data(int buffer) const { return arguments_[buffer]; }
  int threads() const { return pool_->threads(); }

  // Fills an input from the generator, or with the array, whose dtype and shape must be the buffer's.
  void generate(int buffer, uint64_t seed);
  absl::Status set(int buffer, const Array& array);
  // Spoils everything that the kernels should write, so that what nobody writes is found.
  void poison_results();
  void run();

 private:
  Executor() = default;
  const Program* program_ = nullptr;
  std::vector<SharedObject> objects_;
  std::vector<Buffer> buffers_;   // the caller-visible ones, then the arena
  std::vector<void*> arguments_;  // address of every buffer
  struct Call {
    Launch launch;
    std::vector<void*> args;
  };
  std::vector<Call> calls_;
  std::unique_ptr<Pool> pool_;
};

struct OutputCheck {
  std::string name;
  int samples = 0, wrong = 0;
  double max_error = 0, bound = 0;  // of the sample with the largest error relative to its bound
  int64_t index = 0;                // where
  double expected = 0, found = 0;
};

// Compares sampled elements of every output with the double-precision oracle. `all_generated`: every input came from
// generate() with this seed; otherwise the oracle reads them from the executor's memory.
absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated);

struct RunOptions {
  uint64_t seed = 1;
  std::map<std::string, std::string> inputs;  // by name: .npy files
  std::string weights;                        // .npz with arrays by input name
  std::string output_dir;                     // NAME.npy of every output
  bool save_inputs = false;                   // and inputs/NAME.npy beside them
  int threads = 0;
  int repeat = 0;
  bool check = false;
};

struct RunResult {
  int threads = 1;
  std::vector<OutputCheck> checks;
  std::vector<int64_t> samples_ns;  // one per repeat, of the whole program
  std::vector<std::string> given;   // inputs that came from files
  bool correct() const;
};

absl::StatusOr<RunResult> run_program(const Program& program, const RunOptions& options);

}  // namespace wl
