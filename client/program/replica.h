// What one thread runs a model with, at one size: its own threads, intermediates, inputs and outputs. Weights are those
// of the Model, which may be destroyed before its replicas.
#pragma once

#include <memory>

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
  // Computes the outputs from the inputs. FailedPrecondition names a weight that has no value.
  absl::Status run();

 private:
  friend class Model;
  Replica(std::shared_ptr<Model::Impl> model, Executor executor)
      : model_(std::move(model)), executor_(std::move(executor)) {}
  std::shared_ptr<Model::Impl> model_;
  Executor executor_;
};

}  // namespace wl
