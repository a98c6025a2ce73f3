// What one thread needs to run a model at one size: CPU threads, intermediates, inputs and outputs of its own. The
// weights are shared with the Model, which may be destroyed before its replicas.
#pragma once

#include <memory>
#include <optional>

#include "client/program/executor.h"
#include "client/program/model.h"

namespace wl {

// A Replica can be moved. Only one thread may use it at a time.
class Replica {
 public:
  const Program& program() const { return executor_.program(); }
  int threads() const { return executor_.threads(); }
  // Binds a buffer to memory as Executor::bind() does. Memory of different buffers must not overlap.
  bool bind(int buffer, void* memory) { return executor_.bind(buffer, memory); }
  // Returns the host memory from which a run reads an input, or to which it writes an output.
  void* data(int buffer) const { return executor_.data(buffer); }
  // These functions do what the functions of Executor with the same names do.
  absl::Status needs_gpu() const { return executor_.needs_gpu(); }
  absl::Status bind_device(int buffer, void* memory) { return executor_.bind_device(buffer, memory); }
  absl::Status copy_on_device(int buffer, void* to, std::optional<void*> stream) const {
    return executor_.copy_on_device(buffer, to, stream);
  }
  // Computes the outputs from the inputs. FailedPrecondition names a weight that has no value.
  absl::Status run();
  // Enqueues the kernels in a stream of the GPU, as Executor::launch() does. Errors are those of run().
  absl::Status launch(void* stream);

 private:
  // Returns OK if every weight has a value; otherwise FailedPrecondition.
  absl::Status check_weights() const;
  friend class Model;
  Replica(std::shared_ptr<Model::Impl> model, Executor executor)
      : model_(std::move(model)), executor_(std::move(executor)) {}
  std::shared_ptr<Model::Impl> model_;
  Executor executor_;
};

}  // namespace wl
