// A tuned model for use in programs: loads what `warploom tune --out DIR` wrote and runs it in this process. Needs no
// compiler, no coordinator and no store.
//
//     absl::StatusOr<wl::Model> model = wl::Model::load("tuned");
//     model->load_weights("model.onnx");
//     auto outputs = model->run({{"x", array}});
//
// examples/run_model.cpp is a complete program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "client/program/npy.h"
#include "client/program/weights.h"

namespace wl {

class LoadedBundle;
class Replica;
struct ExecutorOptions;

struct ModelOptions {
  int threads = 0;          // largest number of CPU threads; 0: as many as the kernels were tuned with
  bool pin = false;         // whether to pin the model's threads to CPUs, including the thread that loads the model
  std::string device = {};  // name of the GPU, such as "cuda:1"; empty: the first device that runs the kernels
};

// Thread-safe: every function may be called from any thread at any time. Calls of run() on one Model run one after the
// other, each with all of its threads. For runs at the same time, each thread needs a Replica.
class Model {
 public:
  // Errors are those of load_bundle(). ResourceExhausted: memory is short. Unavailable: the kernels need a GPU that
  // this machine lacks.
  static absl::StatusOr<Model> load(const std::string& folder, const ModelOptions& options = {});
  // Creates a model from a loaded bundle, which several models may share. The model has weights of its own. Errors are
  // those of load(), except errors about the bundle's files.
  static absl::StatusOr<Model> of(std::shared_ptr<const LoadedBundle> bundle, const ModelOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Returns the sizes for which the model was tuned. There is at least one, which is an empty Bind if the graph has no
  // symbolic dimensions.
  std::vector<Bind> sizes() const;
  // Return inputs and outputs in the graph's order at the given size (an index of sizes()). Weights are not among the
  // inputs.
  std::vector<TensorInfo> inputs(size_t size = 0) const;
  std::vector<TensorInfo> weights() const;
  std::vector<TensorInfo> outputs(size_t size = 0) const;

  // Sets a weight to a copy of the values. InvalidArgument: there is no such weight, or its dtype or shape is another.
  absl::Status set_weight(const std::string& name, const Array& value);
  absl::Status set_weight(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes);
  // Sets every weight for which the .onnx, .npz or .npy file, or the folder of .npy files, has a value. `onnx` reads
  // ONNX files; without it, they cannot be read.
  absl::Status load_weights(const std::string& path, OnnxReader onnx = nullptr);
  // Gives every weight without a value random values, the same for the same seed; for tests and timing.
  absl::Status generate_weights(uint64_t seed);

  // Computes all outputs, by name. The shapes of the inputs select one of the tuned sizes. InvalidArgument: none fits;
  // the message lists the sizes. FailedPrecondition names a weight that has no value.
  absl::StatusOr<std::map<std::string, Array>> run(const std::map<std::string, Array>& inputs);

  // Returns the size whose inputs have these shapes. InvalidArgument: no size fits; the message lists the sizes or, for
  // a model of a single size, names the input that does not fit.
  absl::StatusOr<size_t> size_of(const std::map<std::string, Shape>& shapes) const;
  // Creates another executor at a size, with threads of its own and the weights of this model (replica.h). A GPU is
  // that of this model, whatever `options` say. Errors are those of load(). Weights must not be set while replicas run.
  absl::StatusOr<Replica> replica(size_t size, const ExecutorOptions& options);

 private:
  friend class Replica;
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace wl
