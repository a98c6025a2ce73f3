// Matrix products on GPUs by the vendors' libraries cuBLASLt and hipBLASLt, whose functions differ only in their names.
// The library (compiler/base/libraries.h) is opened at run time, when a kernel that calls it is loaded.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/base/matmul.h"

namespace wl {

// The functions of one library. Each returns 0 or the number of an error. Handles are opaque. A "wish" is the library's
// preference object, which sets limits for the algorithms that the library proposes.
struct MatmulApi {
  std::string name, version;  // name and version of the library, e.g. "cublaslt" and "13.1.0"
  bool cublaslt = false;      // whether the library is cuBLASLt; otherwise it is hipBLASLt
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*layout_create)(void**, int dtype, uint64_t rows, uint64_t columns, int64_t leading) = nullptr;
  int (*layout_set)(void*, int attribute, const void*, size_t) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*product_create)(void**, int compute, int scale) = nullptr;
  int (*product_set)(void*, int attribute, const void*, size_t) = nullptr;
  int (*product_destroy)(void*) = nullptr;
  int (*wish_create)(void**) = nullptr;
  int (*wish_set)(void*, int attribute, const void*, size_t) = nullptr;
  int (*wish_destroy)(void*) = nullptr;
  int (*propose)(void* handle, void* product, void* a, void* b, void* c, void* d, void* wish, int most, void* proposed,
                 int* found) = nullptr;
  int (*multiply)(void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b,
                  void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                  const void* algorithm, void* work, size_t work_bytes, void* stream) = nullptr;
  // The library's numbers for attributes, compute types, dtypes and epilogues.
  int batch_count, batch_step, transpose_a, transpose_b, epilogue, bias_pointer, bias_dtype, work_bytes;
  int compute_f32, compute_tf32, transposed, f32, f16, bf16, relu, gelu, bias, plain;
};

// Returns the functions of the library called `name`, which is opened once. FailedPrecondition: the library is not
// installed or too old; the message names the package that has it. InvalidArgument: `name` is not that of a library for
// GPUs.
absl::StatusOr<const MatmulApi*> matmul_api(const std::string& name);

// Returns name and version of the library that this machine has for GPUs of a family: "cublaslt=13.1.0". Returns "" if
// there is none; then `why`, unless null, receives the reason.
std::string matmul_library_for(const std::string& family, std::string* why = nullptr);

// The library's descriptors of one product: matrix layouts, operation and preferences. They can be made without a
// device.
class MatmulProduct {
 public:
  // Makes the descriptors; `api` must outlive them. Internal: the library refuses a part of the description; the
  // message says which part.
  static absl::StatusOr<std::unique_ptr<MatmulProduct>> describe(const MatmulApi& api, const MatmulCall& call);
  MatmulProduct(const MatmulProduct&) = delete;
  MatmulProduct& operator=(const MatmulProduct&) = delete;
  ~MatmulProduct();

 private:
  friend class MatmulKernel;
  enum Matrix { kA, kB, kC, kD };
  MatmulProduct(const MatmulApi& api, const MatmulCall& call) : api_(api), call_(call) {}
  absl::Status add_layout(Matrix which, const MatmulMatrix& matrix, DType dtype);
  absl::Status set_operation();
  absl::Status set_wishes();

  const MatmulApi& api_;
  MatmulCall call_;
  void *layouts_[4] = {}, *product_ = nullptr, *wish_ = nullptr;
};

// A product with the algorithm that computes it, for the device that is current when the product is loaded.
class MatmulKernel {
 public:
  // Loads the product that `text`, the text of a MatmulCall, describes. OutOfRange: the library proposes no algorithm
  // at the index MatmulCall::algorithm. InvalidArgument: the text is wrong. FailedPrecondition: the library is not
  // installed. Internal: the library refuses the call.
  static absl::StatusOr<std::unique_ptr<MatmulKernel>> load(const std::string& library, const std::string& text);
  MatmulKernel(const MatmulKernel&) = delete;
  MatmulKernel& operator=(const MatmulKernel&) = delete;
  ~MatmulKernel();

  // Enqueues the product in a stream. `arguments` has addresses as in GpuKernel::launch: of the pointers to the arrays,
  // of the pointer to the workspace (kCounterBytes + kMatmulWorkBytes bytes), and of the number of the pass, which is
  // not used. InvalidArgument: there are fewer arguments than the call names. May be called from several threads.
  absl::Status launch(std::span<void*> arguments, void* stream) const;

 private:
  MatmulKernel() = default;

  std::unique_ptr<MatmulProduct> product_;
  void* handle_ = nullptr;
  uint64_t algorithm_[8] = {};
  // launch() holds this mutex from when it sets the bias, an attribute of the product, until the product is enqueued.
  mutable std::mutex mutex_;
};

}  // namespace wl
