// The part of onnxruntime's C interface that a custom operator needs. Debian 12 has no package with
// onnxruntime_c_api.h, so the interface is declared here. The interface is stable: newer versions only append
// functions to its table, and its structs have version numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wl::ort {

// Objects of onnxruntime. A function returns NULL, or a Status that says what went wrong.
struct Status;
struct SessionOptions;
struct CustomOpDomain;
struct KernelInfo;
struct KernelContext;
struct Value;
struct TensorInfo;

// The codes of OrtErrorCode that are used here.
enum Code : int { kFail = 1, kInvalidArgument = 2, kNoSuchFile = 3, kNotImplemented = 9 };
// The values of ONNXTensorElementDataType, which are the numbers of ONNX's TensorProto.
enum Element : int {
  kUndefined = 0,
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kBool = 9,
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kBf16 = 16,
  kF8E4M3Fn = 17,
  kF8E5M2 = 19
};

struct CustomOp;

// The table of functions OrtApi. Functions that are not used here have a place in the table but no name.
struct Api {
  Status* (*create_status)(int code, const char* message);
  void* unused1[25];
  Status* (*create_domain)(const char* name, CustomOpDomain** domain);
  Status* (*add_op)(CustomOpDomain* domain, const CustomOp* op);
  Status* (*add_domain)(SessionOptions* options, CustomOpDomain* domain);
  void* unused29[22];
  Status* (*data)(Value* tensor, void** data);
  void* unused52[8];
  Status* (*element)(const TensorInfo* info, int* element);
  Status* (*rank)(const TensorInfo* info, size_t* rank);
  Status* (*shape)(const TensorInfo* info, int64_t* extents, size_t rank);
  void* unused63[2];
  Status* (*tensor_info)(const Value* tensor, TensorInfo** info);
  void* unused66[20];
  Status* (*integer_attribute)(const KernelInfo* info, const char* name, int64_t* value);
  // Copies a text and the zero that ends it; `*size` counts both. With a null `text` it only sets `*size`.
  Status* (*text_attribute)(const KernelInfo* info, const char* name, char* text, size_t* size);
  Status* (*input_count)(const KernelContext* context, size_t* count);
  Status* (*output_count)(const KernelContext* context, size_t* count);
  Status* (*input)(const KernelContext* context, size_t index, const Value** tensor);
  Status* (*output)(KernelContext* context, size_t index, const int64_t* extents, size_t rank, Value** tensor);
  void* unused92[1];
  void (*release_status)(Status* status);
  void* unused94[5];
  void (*release_tensor_info)(TensorInfo* info);
};
static_assert(offsetof(Api, create_domain) == 26 * sizeof(void*) && offsetof(Api, data) == 51 * sizeof(void*) &&
              offsetof(Api, element) == 60 * sizeof(void*) && offsetof(Api, tensor_info) == 65 * sizeof(void*) &&
              offsetof(Api, integer_attribute) == 86 * sizeof(void*) &&
              offsetof(Api, release_status) == 93 * sizeof(void*) &&
              offsetof(Api, release_tensor_info) == 99 * sizeof(void*));

// The struct OrtApiBase, by which a library gets onnxruntime's functions.
struct ApiBase {
  const Api* (*get)(uint32_t version);  // returns NULL if onnxruntime does not have this version of the interface yet
  const char* (*library_version)();
};

// OrtCustomOp of version 16, the first with creation and computation functions that return a Status.
inline constexpr uint32_t kVersion = 16;
enum Characteristic : int { kRequired = 0, kOptional = 1, kVariadic = 2 };
struct CustomOp {
  uint32_t version;
  void* (*create)(const CustomOp* op, const Api* api, const KernelInfo* info);
  const char* (*name)(const CustomOp* op);
  const char* (*provider)(const CustomOp* op);
  int (*input_type)(const CustomOp* op, size_t index);
  size_t (*input_types)(const CustomOp* op);
  int (*output_type)(const CustomOp* op, size_t index);
  size_t (*output_types)(const CustomOp* op);
  void (*compute)(void* kernel, KernelContext* context);
  void (*destroy)(void* kernel);
  int (*input_characteristic)(const CustomOp* op, size_t index);
  int (*output_characteristic)(const CustomOp* op, size_t index);
  int (*input_memory)(const CustomOp* op, size_t index);
  int (*least_inputs)(const CustomOp* op);
  int (*inputs_are_alike)(const CustomOp* op);
  int (*least_outputs)(const CustomOp* op);
  int (*outputs_are_alike)(const CustomOp* op);
  Status* (*create_or_fail)(const CustomOp* op, const Api* api, const KernelInfo* info, void** kernel);
  Status* (*compute_or_fail)(void* kernel, KernelContext* context);
  Status* (*infer_shapes)(const CustomOp* op, void* context);
};

}  // namespace wl::ort
