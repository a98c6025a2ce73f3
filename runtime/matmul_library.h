// Matrix products by the libraries of GPUs, cuBLASLt and hipBLASLt, which have the same functions under other names.
// They are opened at run time (compiler/base/libraries.h), where a kernel calls one.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/base/matmul.h"

namespace wl {

// One library's functions; all return 0 or an error's number. Handles are opaque.
struct MatmulApi {
  std::string name, version;  // "cublaslt", "13.1.0"
  bool cublaslt = false;      // else hipBLASLt
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
  // The API's numbers.
  int batch_count, batch_step, transpose_a, transpose_b, epilogue, bias_pointer, bias_dtype, work_bytes;
  int compute_f32, compute_tf32, transposed, f32, f16, bf16, relu, gelu, bias, plain;
};

// The library of a name, opened once. FailedPrecondition: it is not there, or too old; the message says what has it.
absl::StatusOr<const MatmulApi*> matmul_api(const std::string& name);

// "cublaslt=13.1.0", or "" and why there is none: the library for GPUs of a family on this machine.
std::string matmul_library_for(const std::string& family, std::string* why = nullptr);

// A product that a library has been told of: its layouts, attributes and what it is asked for. Nothing of a device.
class MatmulProduct {
 public:
  // Internal: the library refuses something; the message says what.
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

// A product with the algorithm that the library runs for it, on the device that is current when it is made.
class MatmulKernel {
 public:
  // `text`: of a MatmulCall. OutOfRange: the library proposes fewer algorithms for the product. FailedPrecondition: the
  // library is not there. Other errors say what the library refuses.
  static absl::StatusOr<std::unique_ptr<MatmulKernel>> load(const std::string& library, const std::string& text);
  MatmulKernel(const MatmulKernel&) = delete;
  MatmulKernel& operator=(const MatmulKernel&) = delete;
  ~MatmulKernel();

  // Puts the product into a stream. `arguments` are addresses of pointers to device memory, as those of a launch: the
  // kernel's, its workspace (kCounterBytes + kMatmulWorkBytes long) and one more. InvalidArgument: too few.
  absl::Status launch(std::span<void*> arguments, void* stream) const;

 private:
  MatmulKernel() = default;

  std::unique_ptr<MatmulProduct> product_;
  void* handle_ = nullptr;
  uint64_t algorithm_[8] = {};
  mutable std::mutex mutex_;  // the address of a bias is an attribute of the product
};

}  // namespace wl
