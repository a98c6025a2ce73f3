// A library of custom operators for onnxruntime. Its operator warploom::Bundle runs a bundle in an InferenceSession.
//
//     options.register_custom_ops_library("libwarploom-onnxruntime.so")
//
// Its inputs and outputs are those of the bundle, in the graph's order. Attributes of a node:
//   bundle   the bundle's folder, which every session verifies and loads
//   weights  a file or folder with values of weights, as warploom_model_load_weights() reads it; "" or absent: none
//   threads  limit of threads; 0 or absent: as many as the kernels were tuned with
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#include <warploom.hpp>

#include "client/onnxruntime/api.h"

namespace wl::ort {
namespace {

// The exception for a status that a function of onnxruntime returned. guarded() hands the status back to onnxruntime,
// which then owns it.
struct Failed {
  Status* status;
};

void check(Status* status) {
  if (status != nullptr) throw Failed{status};
}

int code_of(warploom_code code) {
  switch (code) {
    case WARPLOOM_INVALID_ARGUMENT:
    case WARPLOOM_OUT_OF_RANGE:
      return kInvalidArgument;
    case WARPLOOM_NOT_FOUND:
      return kNoSuchFile;
    case WARPLOOM_UNIMPLEMENTED:
      return kNotImplemented;
    default:
      return kFail;
  }
}

// Calls `body` and returns what it throws as a status of onnxruntime, since no exception may leave this library; null
// if it throws nothing.
template <typename Body>
Status* guarded(const Api& api, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failed& failed) {
    return failed.status;
  } catch (const warploom::Error& error) {
    return api.create_status(code_of(error.code()), error.what());
  } catch (const std::exception& error) {
    return api.create_status(kFail, error.what());
  } catch (...) {
    return api.create_status(kFail, "an unknown error");
  }
}

// Returns onnxruntime's number of an element type; kUndefined if it has none.
int element_of(warploom_dtype dtype) {
  static const std::map<warploom_dtype, Element> kElements = {
      {WARPLOOM_F64, kF64},   {WARPLOOM_F32, kF32},       {WARPLOOM_F16, kF16},          {WARPLOOM_BF16, kBf16},
      {WARPLOOM_I64, kI64},   {WARPLOOM_I32, kI32},       {WARPLOOM_I16, kI16},          {WARPLOOM_I8, kI8},
      {WARPLOOM_U64, kU64},   {WARPLOOM_U32, kU32},       {WARPLOOM_U16, kU16},          {WARPLOOM_U8, kU8},
      {WARPLOOM_BOOL, kBool}, {WARPLOOM_F8E5M2, kF8E5M2}, {WARPLOOM_F8E4M3FN, kF8E4M3Fn}};
  const auto found = kElements.find(dtype);
  return found == kElements.end() ? kUndefined : found->second;
}

warploom::Error wrong(const std::string& what) {
  return {WARPLOOM_INVALID_ARGUMENT, "warploom::Bundle: " + what};
}

// Returns the text attribute `name` of a node. If the node lacks it, returns "", or throws an exception if `needed`
// is set.
std::string text_of(const Api& api, const KernelInfo* info, const char* name, bool needed) {
  size_t size = 0;
  if (Status* status = api.text_attribute(info, name, nullptr, &size); status != nullptr) {
    api.release_status(status);
    if (needed) throw wrong(std::string("the node has no text attribute \"") + name + "\"");
    return "";
  }
  std::string text(size, '\0');
  check(api.text_attribute(info, name, text.data(), &size));
  return text.c_str();  // cuts off the terminating zero, which `size` counts
}

int threads_of(const Api& api, const KernelInfo* info) {
  int64_t threads = 0;
  if (Status* status = api.integer_attribute(info, "threads", &threads); status != nullptr) api.release_status(status);
  if (threads < 0 || threads > 4096) throw wrong("threads is " + std::to_string(threads));
  return static_cast<int>(threads);
}

// A node warploom::Bundle of an onnxruntime session. Several threads may run a session at once, so each run uses an
// executor of its own, which is kept for later runs.
class Kernel {
 public:
  Kernel(const Api& api, const KernelInfo* info)
      : api_(api), model_(text_of(api, info, "bundle", true)), threads_(threads_of(api, info)) {
    if (const std::string weights = text_of(api, info, "weights", false); !weights.empty())
      model_.load_weights(weights);
    inputs_ = model_.inputs();
    for (size_t size = 0; size < model_.sizes(); ++size) outputs_.push_back(model_.outputs(size));
  }

  Status* run(KernelContext* context) noexcept {
    return guarded(api_, [&] { compute(context); });
  }

 private:
  // The memory and shape of an input that onnxruntime passes.
  struct Given {
    const void* data;
    std::vector<int64_t> shape;
  };

  Given given(const KernelContext* context, size_t index, const warploom::Tensor& tensor) const {
    const Value* value = nullptr;
    check(api_.input(context, index, &value));
    if (value == nullptr) throw wrong("input " + tensor.name + " is left out");
    TensorInfo* info = nullptr;
    check(api_.tensor_info(value, &info));
    const std::unique_ptr<TensorInfo, void (*)(TensorInfo*)> owner(info, api_.release_tensor_info);
    int element = 0;
    size_t rank = 0;
    check(api_.element(info, &element));
    check(api_.rank(info, &rank));
    if (element != element_of(tensor.dtype))
      throw wrong("input " + tensor.name + " has elements of ONNX type " + std::to_string(element) +
                  "; the bundle takes " + warploom_dtype_name(tensor.dtype));
    Given out{nullptr, std::vector<int64_t>(rank)};
    check(api_.shape(info, out.shape.data(), rank));
    void* data = nullptr;
    check(api_.data(const_cast<Value*>(value), &data));
    out.data = data;
    return out;
  }

  // Allocates the value of an output and returns its memory; null if nothing reads the output.
  void* taken(KernelContext* context, size_t index, const warploom::Tensor& tensor) const {
    Value* value = nullptr;
    check(api_.output(context, index, tensor.shape.data(), tensor.shape.size(), &value));
    if (value == nullptr) return nullptr;
    TensorInfo* info = nullptr;
    check(api_.tensor_info(value, &info));
    const std::unique_ptr<TensorInfo, void (*)(TensorInfo*)> owner(info, api_.release_tensor_info);
    int element = 0;
    check(api_.element(info, &element));
    if (element != element_of(tensor.dtype))
      throw wrong("the model says that output " + tensor.name + " has elements of ONNX type " +
                  std::to_string(element) + "; the bundle gives " + warploom_dtype_name(tensor.dtype));
    void* data = nullptr;
    check(api_.data(value, &data));
    return data;
  }

  void compute(KernelContext* context) {
    size_t inputs = 0, outputs = 0;
    check(api_.input_count(context, &inputs));
    check(api_.output_count(context, &outputs));
    if (inputs != inputs_.size() || outputs != outputs_[0].size())
      throw wrong("the node has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
                  " outputs; the bundle has " + std::to_string(inputs_.size()) + " and " +
                  std::to_string(outputs_[0].size()));
    std::vector<Given> all;
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < inputs; ++i) {
      all.push_back(given(context, i, inputs_[i]));
      shapes.push_back(all.back().shape);
    }
    const size_t size = model_.size_of(shapes);
    warploom::Executor executor = take(size);
    for (size_t i = 0; i < inputs; ++i) executor.bind_input(i, all[i].data);
    for (size_t i = 0; i < outputs; ++i) executor.bind_output(i, taken(context, i, outputs_[size][i]));
    executor.run();
    // The bound memory belongs to onnxruntime, so the executor is unbound before it is kept for later runs. If the run
    // fails, the executor is destroyed instead.
    for (size_t i = 0; i < inputs; ++i) executor.bind_input(i, nullptr);
    for (size_t i = 0; i < outputs; ++i) executor.bind_output(i, nullptr);
    const std::lock_guard lock(mutex_);
    idle_[size].push_back(std::move(executor));
  }

  warploom::Executor take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      if (std::vector<warploom::Executor>& idle = idle_[size]; !idle.empty()) {
        warploom::Executor executor = std::move(idle.back());
        idle.pop_back();
        return executor;
      }
    }
    return warploom::Executor(model_, size, {threads_, false, {}});
  }

  const Api& api_;
  warploom::Model model_;
  const int threads_;
  std::vector<warploom::Tensor> inputs_;                // the bundle's inputs at its first size
  std::vector<std::vector<warploom::Tensor>> outputs_;  // for each size of the bundle, its outputs
  std::mutex mutex_;
  // For each size of the bundle, the executors that no run uses at present.
  std::map<size_t, std::vector<warploom::Executor>> idle_;
};

Status* create(const CustomOp*, const Api* api, const KernelInfo* info, void** kernel) {
  return guarded(*api, [&] { *kernel = new Kernel(*api, info); });
}

Status* compute(void* kernel, KernelContext* context) {
  return static_cast<Kernel*>(kernel)->run(context);
}

constexpr CustomOp kBundle = {.version = kVersion,
                              .create = nullptr,
                              .name = [](const CustomOp*) { return "Bundle"; },
                              .provider = [](const CustomOp*) { return "CPUExecutionProvider"; },
                              // kUndefined allows any element type for inputs and outputs.
                              .input_type = [](const CustomOp*, size_t) -> int { return kUndefined; },
                              .input_types = [](const CustomOp*) -> size_t { return 1; },
                              .output_type = [](const CustomOp*, size_t) -> int { return kUndefined; },
                              .output_types = [](const CustomOp*) -> size_t { return 1; },
                              .compute = nullptr,
                              .destroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); },
                              .input_characteristic = [](const CustomOp*, size_t) -> int { return kVariadic; },
                              .output_characteristic = [](const CustomOp*, size_t) -> int { return kVariadic; },
                              .input_memory = [](const CustomOp*, size_t) { return 0; },
                              .least_inputs = [](const CustomOp*) { return 1; },
                              .inputs_are_alike = [](const CustomOp*) { return 0; },
                              .least_outputs = [](const CustomOp*) { return 1; },
                              .outputs_are_alike = [](const CustomOp*) { return 0; },
                              .create_or_fail = create,
                              .compute_or_fail = compute,
                              .infer_shapes = nullptr};

// Returns the domain of the operator. All sessions share the domain, which is never freed, since sessions may end in
// any order.
CustomOpDomain* domain(const Api& api) {
  static std::mutex mutex;
  static CustomOpDomain* made = nullptr;
  const std::lock_guard lock(mutex);
  if (made != nullptr) return made;
  CustomOpDomain* domain = nullptr;
  check(api.create_domain("warploom", &domain));
  check(api.add_op(domain, &kBundle));
  return made = domain;
}

}  // namespace
}  // namespace wl::ort

// The entry point that onnxruntime looks up in a library of custom operators. Returns NULL on success.
// NOLINTNEXTLINE(readability-identifier-naming): a name of onnxruntime
extern "C" wl::ort::Status* RegisterCustomOps(wl::ort::SessionOptions* options, const wl::ort::ApiBase* base) {
  const wl::ort::Api* api = base->get(wl::ort::kVersion);
  if (api == nullptr)
    return base->get(1)->create_status(wl::ort::kNotImplemented, "warploom::Bundle needs onnxruntime 1.16 or newer");
  return wl::ort::guarded(*api, [&] { wl::ort::check(api->add_domain(options, wl::ort::domain(*api))); });
}
