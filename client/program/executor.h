// A Program with its kernels loaded and its memory allocated. No compiler, no coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/program/gpu_program.h"
#include "client/program/npy.h"
#include "client/program/program.h"
#include "runtime/runtime.h"

namespace wl {

// What several executors of one model have in common: threads or a device, and the memory of the weights. They are made
// by the first that needs them.
struct Shared {
  std::shared_ptr<Pool> pool;
  GpuShared gpu;
  std::map<std::string, std::shared_ptr<Buffer>> weights;  // by name
};

struct ExecutorOptions {
  int threads = 0;  // at most so many; 0 = what the kernels were tuned with
  // Pin the calling thread and the pool's to CPUs while the executor lives; for benchmarks.
  bool pin = true;
  std::string device = {};  // of GPU kernels: "cuda:1"; empty: the first that they run on
};

// Movable; one thread at a time. Its Program and its Shared must outlive it. A GPU's buffers have a side in the host's
// memory, which is what data() shows: what is set here is copied to the device at once, what a run stores is copied
// back at its end (outputs) or at the end of its step.
class Executor {
 public:
  // Errors: InvalidArgument when a kernel cannot be loaded, ResourceExhausted, Unavailable when its GPU is not
  // here.
  static absl::StatusOr<Executor> create(const Program& program, const ExecutorOptions& options,
                                         Shared* shared = nullptr);

  const Program& program() const { return *program_; }
  void* data(int buffer) const { return arguments_[buffer]; }
  int threads() const { return pool_ ? pool_->threads() : 0; }                       // 0: on a GPU
  std::string device() const { return gpu_ ? gpu_->device() : std::string("cpu"); }  // or "cuda:0"

  // Every error of the following that does not say otherwise is a GPU's: Internal, and its context is spoilt.
  // Fills an input from the generator, or with the array, whose dtype and shape must be the buffer's.
  absl::Status generate(int buffer, uint64_t seed);
  absl::Status set(int buffer, const Array& array);
  // The same from row-major bytes.
  absl::Status set(int buffer, DType dtype, const Shape& shape, std::string_view bytes);
  // Spoils everything that the kernels should write, so that what nobody writes is found.
  absl::Status poison_results();
  // Only what this step should write.
  absl::Status poison_step(int step);
  absl::Status run();
  absl::Status run_step(int step);
  // ns of each of `repeats` runs after two more: on a GPU by its own clock and without the copies.
  absl::StatusOr<std::vector<int64_t>> time(int repeats);
  // ns of every step in each of `repeats` runs after two more, [step][run]: with what the steps before it left in
  // caches, which is not what its kernel found when it was timed alone. On a GPU launches of steps do not overlap here.
  absl::StatusOr<std::vector<std::vector<int64_t>>> profile(int repeats);

 private:
  Executor() = default;
  absl::Status load_objects(const ExecutorOptions& options, Shared* shared);
  absl::Status poison(int buffer);
  const Program* program_ = nullptr;
  std::vector<SharedObject> objects_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // the caller-visible ones, then the arena
  std::vector<void*> arguments_;                  // address of every buffer
  struct Call {
    Launch launch;
    std::vector<void*> args;
  };
  std::vector<BlockFunction> entries_;  // of the kernels; none on a GPU
  std::vector<Call> calls_;
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<GpuProgram> gpu_;
};

std::string type_text(const ProgramBuffer& buffer);  // "f32[4,8]"

}  // namespace wl
