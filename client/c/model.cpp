#include <algorithm>
#include <map>

#include "client/c/handles.h"
#include "client/c/onnx.h"
#include "client/c/structs.h"

using wl::invalid;

static_assert(WARPLOOM_F64 == static_cast<int>(wl::DType::f64) + 1 &&
                  WARPLOOM_F8E5M2 == static_cast<int>(wl::DType::f8e5m2) + 1 && WARPLOOM_F8E5M2 == wl::kDTypeCount,
              "the numbers of the header are part of the ABI");

warploom_model::warploom_model(wl::Model loaded) : model(std::move(loaded)), weights(model.weights()) {
  const std::vector<wl::Bind> binds = model.sizes();
  for (size_t size = 0; size < binds.size(); ++size)
    sizes.push_back({wl::bind_text(binds[size]), model.inputs(size), model.outputs(size)});
}

namespace wl {
namespace {

// Returns the tensors of a kind (inputs, outputs or weights) at one of the model's sizes; null if there is no such
// kind.
const std::vector<TensorInfo>* tensors_of(const warploom_model& model, size_t size, warploom_kind kind) {
  switch (kind) {
    case WARPLOOM_INPUT:
      return &model.sizes[size].inputs;
    case WARPLOOM_OUTPUT:
      return &model.sizes[size].outputs;
    case WARPLOOM_WEIGHT:
      return &model.weights;
  }
  return nullptr;
}

absl::StatusOr<const TensorInfo*> tensor_of(const warploom_model& model, size_t size, warploom_kind kind,
                                            size_t index) {
  if (size >= model.sizes.size())
    return invalid("there is no size ", size, "; the model was tuned for ", model.sizes.size());
  const std::vector<TensorInfo>* tensors = tensors_of(model, size, kind);
  if (tensors == nullptr) return invalid("there is no kind of tensor ", static_cast<int>(kind));
  if (index >= tensors->size())
    return invalid("there is no tensor ", index, " of this kind; the model has ", tensors->size());
  return &(*tensors)[index];
}

}  // namespace
}  // namespace wl

extern "C" {

const char* warploom_dtype_name(warploom_dtype dtype) {
  if (dtype < WARPLOOM_F64 || dtype > WARPLOOM_F8E5M2) return nullptr;
  // The dtype's name is a string literal, so a zero byte follows it.
  return wl::name_of(static_cast<wl::DType>(dtype - 1)).data();
}

warploom_status* warploom_model_load(const char* folder, const void* options, warploom_model** model) {
  return wl::guarded([&]() -> absl::Status {
    if (folder == nullptr || model == nullptr) return invalid("warploom_model_load: folder and model may not be NULL");
    if (options != nullptr) return invalid("warploom_model_load: options are NULL in this version");
    WL_ASSIGN_OR_RETURN(wl::Model loaded, wl::Model::load(folder));
    *model = new warploom_model(std::move(loaded));
    return absl::OkStatus();
  });
}

void warploom_model_free(warploom_model* model) {
  delete model;
}

size_t warploom_model_sizes(const warploom_model* model) {
  return model->sizes.size();
}

const char* warploom_model_size_text(const warploom_model* model, size_t size) {
  return size < model->sizes.size() ? model->sizes[size].text.c_str() : nullptr;
}

size_t warploom_model_count(const warploom_model* model, warploom_kind kind) {
  const std::vector<wl::TensorInfo>* tensors = wl::tensors_of(*model, 0, kind);
  return tensors == nullptr ? 0 : tensors->size();
}

warploom_status* warploom_model_tensor(const warploom_model* model, size_t size, warploom_kind kind, size_t index,
                                       warploom_tensor* tensor) {
  return wl::guarded([&]() -> absl::Status {
    WL_ASSIGN_OR_RETURN(const wl::TensorInfo* info, wl::tensor_of(*model, size, kind, index));
    warploom_tensor given = {};
    given.name = info->name.c_str();
    given.dtype = static_cast<warploom_dtype>(static_cast<int>(info->dtype) + 1);
    given.rank = static_cast<int32_t>(info->shape.size());
    given.shape = info->shape.data();
    given.bytes = static_cast<size_t>(wl::elements(info->shape) * wl::size_of(info->dtype));
    wl::give(given, tensor);
    return absl::OkStatus();
  });
}

warploom_status* warploom_model_size_of(const warploom_model* model, const int64_t* const* shapes, size_t* size) {
  return wl::guarded([&]() -> absl::Status {
    std::map<std::string, wl::Shape> by_name;
    const std::vector<wl::TensorInfo>& inputs = model->sizes[0].inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      by_name[inputs[i].name].assign(shapes[i], shapes[i] + inputs[i].shape.size());
    WL_ASSIGN_OR_RETURN(*size, model->model.size_of(by_name));
    return absl::OkStatus();
  });
}

warploom_status* warploom_model_set_weight(warploom_model* model, const char* name, const void* data, size_t bytes) {
  return wl::guarded([&]() -> absl::Status {
    const auto is_it = [&](const wl::TensorInfo& weight) { return weight.name == name; };
    const auto weight = std::find_if(model->weights.begin(), model->weights.end(), is_it);
    // For an unknown name, set_weight() returns an error that lists the names of the weights.
    if (weight == model->weights.end()) return model->model.set_weight(name, wl::Array());
    return model->model.set_weight(name, weight->dtype, weight->shape, {static_cast<const char*>(data), bytes});
  });
}

warploom_status* warploom_model_load_weights(warploom_model* model, const char* path) {
  return wl::guarded([&] { return model->model.load_weights(path, wl::visit_onnx_lazily); });
}

warploom_status* warploom_model_generate_weights(warploom_model* model, uint64_t seed) {
  return wl::guarded([&] { return model->model.generate_weights(seed); });
}

}  // extern "C"
