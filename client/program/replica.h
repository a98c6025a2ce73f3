// What one thread runs a model with, at one size: its own threads, intermediates, inputs and outputs. Weights are those
// of the Model, which may be destroyed before its replicas.
#pragma once

#include <memory>
#include <optional>

#include "client/program/executor.h"
#include "client/program/model.h"

namespace wl {

// Movable; used by one thread at a time.
class Replica {
 public:
  const Program& program() const { return executor_.program(); }
  int threads() const { return executor_.threads(); }
  // As Executor::bind(). The memories that kernels use at the same time must not overlap.
  bool bind(int buffer, void* memory) { return executor_.bind(buffer, memory); }
  // The memory that a run reads an input from, or writes an output to.
  void* data(int buffer) const { return executor_.data(buffer); }
  // As Executor::needs_gpu(), bind_device() and copy_on_device().
  absl::Status needs_gpu() const { return executor_.needs_gpu(); }
  absl::Status bind_device(int buffer, void* memory) { return executor_.bind_device(buffer, memory); }
  absl::Status copy_on_device(int buffer, void* to, std::optional<void*> stream) const {
    return executor_.copy_on_device(buffer, to, stream);
  }
  // Computes the outputs from the inputs. FailedPrecondition names a weight that has no value.
  absl::Status run();
  // The same in a stream, as Executor::launch().
  absl::Status launch(void* stream);

 private:
  absl::Status check_weights() const;
  friend class Model;
  Replica(std::shared_ptr<Model::Impl> model, Executor executor)
      : model_(std::move(model)), executor_(std::move(executor)) {}
  std::shared_ptr<Model::Impl> model_;
  Executor executor_;
};

}  // namespace wl
