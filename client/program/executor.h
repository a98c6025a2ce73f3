// A Program with its kernels loaded and its memory allocated. Needs no compiler and no coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/program/gpu_program.h"
#include "client/program/npy.h"
#include "client/program/program.h"
#include "runtime/runtime.h"

namespace wl {

// What the executors of one model share: the CPU threads or the GPU, and the memory of the weights. Each of these is
// created by the first executor that needs it.
struct Shared {
  struct Weight {
    char* data = nullptr;
    int64_t bytes = 0;
    std::shared_ptr<Buffer> memory;  // the allocation in which this weight and others lie
  };
  std::shared_ptr<Pool> pool;
  GpuShared gpu;
  std::map<std::string, Weight> weights;  // for each name of a weight, its memory
};

struct ExecutorOptions {
  int threads = 0;  // largest number of CPU threads; 0: as many as the kernels were tuned with
  // Whether the calling thread and the pool's threads are pinned to CPUs while the executor lives; for benchmarks.
  bool pin = true;
  std::string device = {};  // name of the GPU, such as "cuda:1"; empty: the first device that runs the kernels
};

// Movable; may be used by one thread at a time. The Program and the Shared must outlive the executor. A GPU's buffers
// have a copy in host memory, which data() returns: inputs are copied to the device when they are set, outputs are
// copied back at the end of a run and intermediates at the end of their step.
class Executor {
 public:
  // Creates an executor that can run. InvalidArgument: a kernel cannot be loaded. ResourceExhausted: memory is short.
  // Unavailable: this machine lacks the GPU.
  static absl::StatusOr<Executor> create(const Program& program, const ExecutorOptions& options,
                                         Shared* shared = nullptr);
  // Creates an executor that has memory but no kernels, to fill inputs: no code of the program runs, and no device is
  // needed. Its runs fail (FailedPrecondition). ResourceExhausted: memory is short.
  static absl::StatusOr<Executor> without_kernels(const Program& program);

  const Program& program() const { return *program_; }
  // Returns the host memory of a buffer: the executor's own, or memory that bind() has bound.
  void* data(int buffer) const { return arguments_[static_cast<size_t>(buffer)]; }
  // Returns the number of CPU threads; 0 on a GPU.
  int threads() const { return pool_ ? pool_->threads() : 0; }
  // Returns "cpu", or the name of the GPU such as "cuda:0".
  std::string device() const { return gpu_ ? gpu_->device() : std::string("cpu"); }

  // generate() fills an input with generated values, set() with an array of the buffer's dtype and shape. Here and
  // below, an Internal error comes from a GPU whose context is unusable afterwards.
  absl::Status generate(int buffer, uint64_t seed);
  absl::Status set(int buffer, const Array& array);
  // Fills an input with row-major bytes of the buffer's dtype and shape.
  absl::Status set(int buffer, DType dtype, const Shape& shape, std::string_view bytes);
  // Binds an input or output to memory of the caller, which runs then use in place of the executor's own; nullptr: the
  // executor's own is used again. Returns false, and keeps the present binding, if kernels cannot use the memory in
  // place: the memory does not begin at a multiple of 64 bytes, the buffer is a weight or an intermediate, or kernels
  // run on a GPU. Device memory is unbound in any case.
  bool bind(int buffer, void* memory);
  // Copies an input from host memory to the GPU, as set() does. Does nothing on CPUs, or if device memory is bound.
  absl::Status send(int buffer) {
    return gpu_ && !gpu_->is_bound(buffer) ? gpu_->write(buffer, data(buffer)) : absl::OkStatus();
  }
  // Returns OK if kernels run on a GPU; otherwise FailedPrecondition.
  absl::Status needs_gpu() const;
  // Binds an input or output to memory of the GPU, which runs then use in place of the executor's own; nullptr: the
  // executor's own is used again. FailedPrecondition: kernels run on CPUs. InvalidArgument: `memory` does not begin at
  // a multiple of 64 bytes.
  absl::Status bind_device(int buffer, void* memory);
  // Enqueues all kernels in a stream of the GPU (CUstream, hipStream_t) without waiting, and copies nothing from or to
  // the host. Errors are those of bind_device() and run().
  absl::Status launch(void* stream) const;
  // Enqueues a copy of a buffer to memory of the GPU in a stream; without a stream, waits until the copy is complete.
  absl::Status copy_on_device(int buffer, void* to, std::optional<void*> stream) const;
  // Fills intermediates, outputs, scratch and workspace with poison, which shows elements that kernels do not write.
  absl::Status poison_results();
  // Fills the buffers that a step writes with poison.
  absl::Status poison_step(int step);
  // Run all steps, or one step, and wait for the end. OutOfRange: an index was outside its axis, and the nearest
  // element was used; kernels for GPUs do not report this.
  absl::Status run();
  absl::Status run_step(int step);
  // Returns the times in ns of `repeats` runs, after two untimed runs. On a GPU, the times are measured by its own
  // clock and do not include copies between host and device.
  absl::StatusOr<std::vector<int64_t>> time(int repeats);
  // Returns the times in ns of all steps in `repeats` runs, as [step][run], after two untimed runs. A step finds in the
  // caches what the steps before it left there, unlike a kernel that is timed alone. On a GPU, steps are launched one
  // by one, so their launches do not overlap as they do in run().
  absl::StatusOr<std::vector<std::vector<int64_t>>> profile(int repeats);

 private:
  Executor() = default;
  absl::Status load_objects(const ExecutorOptions& options, Shared* shared);
  absl::Status place_buffers(std::map<std::string, Shared::Weight>& weights);
  absl::Status poison(int buffer);
  absl::Status run_timed();
  // Returns the OutOfRange error for an index outside its axis, which the kernel of step `step` reported.
  absl::Status told_of(const OutsideIndex& outside, int step) const;
  const Program* program_ = nullptr;
  std::vector<SharedObject> objects_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // memory that arguments_ points to
  // For each index of a buffer, the address of the executor's own memory for it.
  std::vector<void*> own_;
  // For each index of a buffer, the address that kernels get: the executor's own or bound memory.
  std::vector<void*> arguments_;
  struct Call {
    Launch launch;
    std::vector<void*> args;
  };
  std::vector<BlockFunction> entries_;  // for each kernel, its entry point; empty on a GPU
  std::vector<int64_t> outside_;        // for each kernel, the value of Launch::outside
  std::vector<Call> calls_;
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<GpuProgram> gpu_;
};

std::string type_text(const ProgramBuffer& buffer);  // formats the dtype and shape of a buffer, e.g. "f32[4,8]"

}  // namespace wl
