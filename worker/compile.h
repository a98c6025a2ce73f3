// The steps of measuring that need no device: choosing where a batch runs, compiling it, and ordering its candidates.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/messages.h"
#include "worker/measure.h"

namespace wl {

// Returns "cpu", or the name of the GPU that a batch's candidates are for; "none" when that GPU is not in options.gpus.
std::string device_of(const Batch& batch, const MeasureOptions& options);

// Returns what a runner serves that is started for this batch: batches of the same answer may share it. A GPU's serves
// all batches of its device. A CPU's shares its process with what it runs, so it serves the rounds of one search.
// Empty: this batch alone, as a promotion is.
std::string serves_of(const Batch& batch, const std::string& device);

// Returns the setup command for the arguments of a batch's problem; the caller sets the seed.
SetupCommand setup_of(const Batch& batch);

// Returns the command that loads a candidate of the batch from its object, as the slot of its number.
LoadCommand load_of(const Batch& batch, size_t candidate, std::string object);

// Compiles every candidate with the compilers of its family. Candidates whose GPU code is not worth running are
// kRejected.
absl::StatusOr<std::vector<Compiled>> compile_batch(const Batch& batch, const MeasureOptions& options,
                                                    const std::string& folder,
                                                    const std::function<void(int done)>& progress);

// Returns the candidates in the order in which to try them: by the promise of their GPU code where it is known,
// otherwise as given.
std::vector<size_t> order_of(const std::vector<Compiled>& compiled);

// Compiles a source alone, in child processes: the compiler that a record's environment names makes the same bytes of
// it on every machine. `runner`: the warploom-runner program, for kernels of GPUs. Ends soon once `cancel` is set.
// InvalidArgument: it does not compile here, and the compiler's first lines. Unavailable: there is no such compiler
// here, no folder for files, or no process.
absl::StatusOr<std::string> build_object(const Source& source, const std::string& runner, Sandbox sandbox,
                                         const std::atomic<bool>* cancel = nullptr);

// The compiler of this machine for a source, as compiler_of() finds it in an environment of this machine; "" when there
// is none. Asks compilers for their versions, once in the life of the process.
std::string own_compiler(const Source& source);

}  // namespace wl
