// A tuned model for programs: what `warploom tune --out DIR` wrote, loaded and run in this process. Needs no compiler,
// no coordinator and no store.
//
//   absl::StatusOr<wl::Model> model = wl::Model::load("tuned");
//   model->load_weights("model.onnx");
//   auto outputs = model->run({{"x", array}});
//
// examples/run_model.cpp is a whole program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "client/program/npy.h"

namespace wl {

struct ModelOptions {
  int threads = 0;          // at most so many; 0: what the kernels were tuned with
  bool pin = false;         // pin the threads to CPUs, the one that loads the model among them
  std::string device = {};  // of GPU bundles: "cuda:1"; empty: the first that the kernels run on
};

// Threads: every function may be called from any thread at any time. Calls of run() on one Model take turns, each using
// all of its threads; for runs side by side load the bundle more than once, with fewer threads each.
class Model {
 public:
  // Errors: those of load_bundle(), ResourceExhausted, Unavailable when the kernels are a GPU's that is not
  // here.
  static absl::StatusOr<Model> load(const std::string& folder, const ModelOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // The sizes it was tuned for, never empty: one empty Bind for a graph without symbolic dimensions.
  std::vector<Bind> sizes() const;
  // In the graph's order, at the given size (an index of sizes()). Inputs without the weights.
  std::vector<TensorInfo> inputs(size_t size = 0) const;
  std::vector<TensorInfo> weights() const;
  std::vector<TensorInfo> outputs(size_t size = 0) const;

  // Copies the values. InvalidArgument when there is no such weight, or it has another dtype or shape.
  absl::Status set_weight(const std::string& name, const Array& value);
  // Every weight that the .onnx, .npz or .npy file, or the folder of .npy files, has a value for.
  absl::Status load_weights(const std::string& path);
  // Random values for what has none yet, the same for the same seed: for tests and timing.
  absl::Status generate_weights(uint64_t seed);

  // Computes all outputs, by name. The shapes of the inputs decide which of the tuned sizes is used; none fits:
  // InvalidArgument lists them. FailedPrecondition names a weight that has no value.
  absl::StatusOr<std::map<std::string, Array>> run(const std::map<std::string, Array>& inputs);

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl
