// The steps of measuring a batch that need no device: choosing the device that measures it, compiling its candidates,
// and ordering them.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/messages.h"
#include "worker/measure.h"

namespace wl {

// Returns the name of the device that measures a batch: "cpu", or the first GPU in options.gpus that has the batch's
// target, otherwise the first of the target's family. Returns "none" if there is no such GPU.
std::string device_of(const Batch& batch, const MeasureOptions& options);

// Returns a text that identifies the batches which may share a runner with this one: batches whose texts are equal. A
// GPU's runner serves all batches of its device. Candidates for a CPU run in the runner's own process, so a CPU's
// runner serves only the rounds of one search and trace. Empty: the runner serves this batch alone, for example a
// promotion.
std::string serves_of(const Batch& batch, const std::string& device);

// Returns the setup command for a batch's problem and recipe, without a seed, which the caller sets.
SetupCommand setup_of(const Batch& batch);

// Returns the command that loads a candidate of the batch; its slot is its index. `object`: a path for a CPU, the code
// itself for a GPU.
LoadCommand load_of(const Batch& batch, size_t candidate, std::string object);

// Compiles every candidate with the compilers of its family, into `folder`. Candidates whose GPU code is not worth
// running become kRejected. `progress` is called on this thread with the number of finished candidates.
absl::StatusOr<std::vector<Compiled>> compile_batch(const Batch& batch, const MeasureOptions& options,
                                                    const std::string& folder,
                                                    const std::function<void(int done)>& progress);

// Compiles the kernels of several batches at once, on all cores, so that measuring these batches one after another
// finds their objects in options.state. Does nothing for batches for GPUs. Errors are not told, since what is missing
// is compiled when its batch is measured. `progress` is called on this thread with the number of finished kernels.
void compile_ahead(const std::vector<const Batch*>& batches, const MeasureOptions& options,
                   const std::function<void(int done)>& progress);

// Returns the indices of the candidates in the order in which to measure them. Where the quality of GPU code is known
// (promise_of), the most promising code comes first; otherwise the order is unchanged.
std::vector<size_t> order_of(const std::vector<Compiled>& compiled);

// Compiles one source by itself, in child processes, and returns the object's bytes. The compiler that a record's
// environment names makes the same bytes on every machine. `runner`: path of the warploom-runner program, for GPU
// kernels. Ends soon after `cancel` is set. InvalidArgument: the source does not compile here; the message has the
// compiler's first lines. Unavailable: this machine has no such compiler, no folder for files, or no process.
absl::StatusOr<std::string> build_object(const Source& source, const std::string& runner, Sandbox sandbox,
                                         const std::atomic<bool>* cancel = nullptr);

// Returns the compiler of this machine for a source, in the form of compiler_of(); "" if there is none. Asks compilers
// for their versions only once in the life of the process.
std::string own_compiler(const Source& source);

}  // namespace wl
