#include "client/program/model.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "client/program/executor.h"
#include "client/program/folded.h"
#include "client/program/loaded.h"
#include "client/program/replica.h"

namespace wl {

struct Model::Impl {
  ModelOptions options;
  std::shared_ptr<const LoadedBundle> bundle;
  std::mutex mutex;  // guards the members below
  // For each size of the bundle, its executor, created when the size is first used.
  std::vector<std::optional<Executor>> executors;
  Shared shared;
  std::set<std::string> missing;  // names of the program's weights that have no value yet
  std::optional<FoldedWeights> folded;
  std::atomic<bool> complete{false};  // whether every weight of the model has a value

  // Returns OK if every weight has a value; otherwise FailedPrecondition, which names a weight without one.
  absl::Status check_complete() const;
  // Ends a series of set(): computes folded weights and updates `complete`.
  absl::Status finish();
  absl::Status set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes);

  absl::Status open(size_t bucket);
  bool is_weight(const std::string& name) const { return wl::is_weight(bundle->first(), name); }
  absl::StatusOr<int> weight_buffer(const std::string& name) const;
};

absl::Status Model::Impl::check_complete() const {
  std::set<std::string> without = folded->missing();
  without.insert(missing.begin(), missing.end());
  if (without.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(cat("weight ", *without.begin(), " and ", without.size() - 1,
                                           " others have no values; call load_weights() or set_weight()"));
}

absl::Status Model::Impl::finish() {
  const absl::Status status = folded->finish(*executors[0]);
  complete = status.ok() && check_complete().ok();
  return status;
}

absl::Status Model::Impl::open(size_t bucket) {
  if (executors[bucket]) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const Program* program, bundle->program(bucket));
  WL_ASSIGN_OR_RETURN(
      Executor executor,
      Executor::create(*program, {.threads = options.threads, .pin = options.pin, .device = options.device}, &shared));
  executors[bucket].emplace(std::move(executor));
  return absl::OkStatus();
}

absl::Status Model::Impl::set(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) {
  if (folded->reads(name)) {
    WL_RETURN_IF_ERROR(folded->set(name, dtype, shape, bytes, *executors[0]));
    if (folded->is_folded(name) || !is_weight(name)) return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(const int buffer, weight_buffer(name));
  WL_RETURN_IF_ERROR(executors[0]->set(buffer, dtype, shape, bytes));
  missing.erase(name);
  return absl::OkStatus();
}

absl::StatusOr<int> Model::Impl::weight_buffer(const std::string& name) const {
  if (const int buffer = input_buffer(bundle->first(), name); buffer >= 0 && is_weight(name)) return buffer;
  std::string names;
  for (const std::string& weight : bundle->first().weights) {
    if (!folded->is_folded(weight)) append(&names, names.empty() ? "" : ", ", weight);
  }
  return invalid("no weight is named ", name, "; the weights are ", names.empty() ? "none" : names);
}

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

absl::StatusOr<Model> Model::load(const std::string& folder, const ModelOptions& options) {
  WL_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedBundle> bundle, LoadedBundle::load(folder));
  return of(std::move(bundle), options);
}

absl::StatusOr<Model> Model::of(std::shared_ptr<const LoadedBundle> bundle, const ModelOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->options = options;
  impl->bundle = std::move(bundle);
  impl->executors.resize(impl->bundle->buckets().size());
  WL_RETURN_IF_ERROR(impl->open(0));
  // The bundle contains the values of small weights. All other weights are missing until they are set.
  const Program& first = impl->bundle->first();
  impl->folded.emplace(first);
  for (size_t i = 0; i < first.buffers.size(); ++i) {
    const ProgramBuffer& buffer = first.buffers[i];
    if (buffer.place != Place::kInput || !impl->is_weight(buffer.name)) continue;
    if (buffer.fill.literal.empty()) {
      if (!impl->folded->is_folded(buffer.name)) impl->missing.insert(buffer.name);
    } else {
      WL_RETURN_IF_ERROR(impl->executors[0]->generate(static_cast<int>(i), 0));
    }
  }
  impl->complete = impl->check_complete().ok();
  return Model(std::move(impl));
}

std::vector<Bind> Model::sizes() const {
  std::vector<Bind> sizes;
  for (const Bucket& bucket : impl_->bundle->buckets()) sizes.push_back(bucket.bind);
  return sizes;
}

std::vector<TensorInfo> Model::inputs(size_t size) const {
  std::vector<TensorInfo> infos;
  for (const TensorInfo& buffer : impl_->bundle->buckets().at(size).inputs) {
    if (!impl_->is_weight(buffer.name)) infos.push_back(buffer);
  }
  return infos;
}

std::vector<TensorInfo> Model::weights() const {
  std::vector<TensorInfo> infos;
  for (const TensorInfo& buffer : impl_->bundle->buckets()[0].inputs) {
    if (impl_->is_weight(buffer.name) && !impl_->folded->is_folded(buffer.name)) infos.push_back(buffer);
  }
  for (TensorInfo& operand : impl_->folded->operands()) {
    if (!impl_->is_weight(operand.name)) infos.push_back(std::move(operand));
  }
  return infos;
}

std::vector<TensorInfo> Model::outputs(size_t size) const {
  return impl_->bundle->buckets().at(size).outputs;
}

absl::Status Model::set_weight(const std::string& name, const Array& value) {
  return set_weight(name, value.dtype, value.shape, value.bytes);
}

absl::Status Model::set_weight(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) {
  const std::lock_guard lock(impl_->mutex);
  WL_RETURN_IF_ERROR(impl_->set(name, dtype, shape, bytes));
  return impl_->finish();
}

absl::Status Model::load_weights(const std::string& path, OnnxReader onnx) {
  const std::lock_guard lock(impl_->mutex);
  WL_RETURN_IF_ERROR(visit_arrays(
      path,
      [&](const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) -> absl::Status {
        if (!impl_->is_weight(name) && !impl_->folded->reads(name)) return absl::OkStatus();
        return impl_->set(name, dtype, shape, bytes);
      },
      onnx));
  return impl_->finish();
}

absl::Status Model::generate_weights(uint64_t seed) {
  const std::lock_guard lock(impl_->mutex);
  for (const std::string& name : impl_->missing) {
    WL_ASSIGN_OR_RETURN(const int buffer, impl_->weight_buffer(name));
    WL_RETURN_IF_ERROR(impl_->executors[0]->generate(buffer, seed));
  }
  impl_->missing.clear();
  WL_RETURN_IF_ERROR(impl_->folded->generate(seed, *impl_->executors[0]));
  return impl_->finish();
}

absl::StatusOr<size_t> Model::size_of(const std::map<std::string, Shape>& shapes) const {
  const std::vector<Bucket>& buckets = impl_->bundle->buckets();
  WL_ASSIGN_OR_RETURN(const size_t size, pick_bucket(buckets, {}, shapes));
  for (const TensorInfo& input : buckets[size].inputs) {
    const auto given = shapes.find(input.name);
    if (given != shapes.end() && given->second != input.shape)
      return invalid("input ", input.name, ": expected the shape ", shape_text(input.shape), ", found ",
                     shape_text(given->second), "; tune the model for that shape too");
  }
  return size;
}

absl::StatusOr<Replica> Model::replica(size_t size, const ExecutorOptions& options) {
  if (size >= impl_->bundle->buckets().size())
    return invalid("there is no size ", size, "; the model was tuned for ", impl_->bundle->buckets().size());
  const std::lock_guard lock(impl_->mutex);
  WL_ASSIGN_OR_RETURN(const Program* program, impl_->bundle->program(size));
  Shared shared = impl_->shared;
  shared.pool = nullptr;
  WL_ASSIGN_OR_RETURN(Executor executor, Executor::create(*program, options, &shared));
  return Replica(impl_, std::move(executor));
}

absl::Status Replica::check_weights() const {
  if (model_->complete.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard lock(model_->mutex);
  return model_->check_complete();
}

absl::Status Replica::launch(void* stream) {
  WL_RETURN_IF_ERROR(check_weights());
  return executor_.launch(stream);
}

absl::Status Replica::run() {
  WL_RETURN_IF_ERROR(check_weights());
  if (executor_.threads() == 0) {  // on a GPU: copies the inputs from host memory to the device
    for (size_t i = 0; i < program().buffers.size(); ++i) {
      const ProgramBuffer& buffer = program().buffers[i];
      if (buffer.place == Place::kInput && !model_->is_weight(buffer.name))
        WL_RETURN_IF_ERROR(executor_.send(static_cast<int>(i)));
    }
  }
  return executor_.run();
}

absl::StatusOr<std::map<std::string, Array>> Model::run(const std::map<std::string, Array>& inputs) {
  const std::lock_guard lock(impl_->mutex);
  WL_RETURN_IF_ERROR(impl_->check_complete());
  std::map<std::string, Shape> shapes;
  for (const auto& [name, array] : inputs) shapes[name] = array.shape;
  WL_ASSIGN_OR_RETURN(const size_t bucket, pick_bucket(impl_->bundle->buckets(), {}, shapes));
  WL_RETURN_IF_ERROR(impl_->open(bucket));
  Executor& executor = *impl_->executors[bucket];
  const Program& program = executor.program();
  std::set<std::string> known;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    if (buffer.place != Place::kInput || impl_->is_weight(buffer.name)) continue;
    known.insert(buffer.name);
    const auto given = inputs.find(buffer.name);
    if (given == inputs.end()) return invalid("input ", buffer.name, " (", type_text(buffer), ") is not given");
    WL_RETURN_IF_ERROR(executor.set(static_cast<int>(i), given->second));
  }
  for (const auto& [name, array] : inputs) {
    if (!known.contains(name)) {
      return invalid("no input is named ", name, "; the inputs are ", absl::StrJoin(known, ", "));
    }
  }
  WL_RETURN_IF_ERROR(executor.run());
  std::map<std::string, Array> outputs;
  for (const ProgramOutput& output : program.outputs) {
    const ProgramBuffer& buffer = program.buffers[output.buffer];
    outputs[output.name] = {
        buffer.dtype, buffer.shape,
        std::string(static_cast<const char*>(executor.data(output.buffer)), static_cast<size_t>(buffer.bytes()))};
  }
  return outputs;
}

}  // namespace wl
