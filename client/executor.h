// A Program with its kernels loaded and its memory allocated. No compiler, no coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/npy.h"
#include "client/program.h"
#include "runtime/runtime.h"

namespace wl {

// What several executors of one model have in common: threads, and the memory of the weights. Both are made by the
// first that needs them.
struct Shared {
  std::shared_ptr<Pool> pool;
  std::map<std::string, std::shared_ptr<Buffer>> weights;  // by name
};

struct ExecutorOptions {
  int threads = 0;  // at most so many; 0 = what the kernels were tuned with
  // Pin the calling thread and the pool's to CPUs while the executor lives; for benchmarks.
  bool pin = true;
};

// Movable; one thread at a time. Its Program and its Shared must outlive it.
class Executor {
 public:
  // Errors: InvalidArgument when a kernel cannot be loaded, ResourceExhausted.
  static absl::StatusOr<Executor> create(const Program& program, const ExecutorOptions& options,
                                         Shared* shared = nullptr);

  const Program& program() const { return *program_; }
  void* data(int buffer) const { return arguments_[buffer]; }
  int threads() const { return pool_->threads(); }

  // Fills an input from the generator, or with the array, whose dtype and shape must be the buffer's.
  void generate(int buffer, uint64_t seed);
  absl::Status set(int buffer, const Array& array);
  // The same from row-major bytes.
  absl::Status set(int buffer, DType dtype, const Shape& shape, std::string_view bytes);
  // Spoils everything that the kernels should write, so that what nobody writes is found.
  void poison_results();
  // Only what this step should write.
  void poison_step(int step);
  void run();
  void run_step(int step);

 private:
  Executor() = default;
  const Program* program_ = nullptr;
  std::vector<SharedObject> objects_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // the caller-visible ones, then the arena
  std::vector<void*> arguments_;                  // address of every buffer
  struct Call {
    Launch launch;
    std::vector<void*> args;
  };
  std::vector<Call> calls_;
  std::shared_ptr<Pool> pool_;
};

std::string type_text(const ProgramBuffer& buffer);  // "f32[4,8]"

}  // namespace wl
