#include "runtime/matmul_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "compiler/base/libraries.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "runtime/matmul_tables.h"

namespace wl {
namespace {

// Alignment in bytes of every argument of a kernel, as client/program places them.
constexpr uint64_t kPointerAlignment = 64;

// Sets the functions and numbers of `api`. Returns the name of the first function that the library lacks, or null.
const char* resolve(void* library, MatmulApi& api) {
  const char* missing = nullptr;
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::decay_t<decltype(member)>>(dlsym(library, name));
    if (member == nullptr && missing == nullptr) missing = name;
  };
#define WL_FIND(member, nvidia, amd) find(api.member, api.cublaslt ? #nvidia : #amd);
  WL_MATMUL_FUNCTIONS(WL_FIND)
#undef WL_FIND
#define WL_NUMBER(member, nvidia, name, amd, hip_name) api.member = api.cublaslt ? nvidia : amd;
  WL_MATMUL_NUMBERS(WL_NUMBER)
#undef WL_NUMBER
  return missing;
}

// Returns the library's version, or "" if it is not known. hipBLASLt reports its version only through a handle, which
// needs a device.
std::string version_of(void* library, const MatmulApi& api) {
  if (api.cublaslt) {
    const auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
    const size_t is = version == nullptr ? 0 : version();
    return is == 0 ? "" : absl::StrCat(is / 10'000, ".", is / 100 % 100, ".", is % 100);
  }
  const auto version = reinterpret_cast<int (*)(void*, int*)>(dlsym(library, "hipblasLtGetVersion"));
  void* handle = nullptr;
  int is = 0;
  if (version == nullptr || api.create(&handle) != 0) return "";
  (void)version(handle, &is);
  (void)api.destroy(handle);
  return is == 0 ? "" : absl::StrCat(is / 100'000, ".", is / 100 % 1000, ".", is % 100);
}

absl::StatusOr<const MatmulApi*> open_api(const Library& row) {
  const auto missing = [&](const std::string& what) {
    return absl::FailedPreconditionError(cat(row.name, ": ", what, "; ", row.package, " has it"));
  };
  void* library = nullptr;
  const char* file = row.files[0];
  for (const char* name : row.files) {
    if (name == nullptr || library != nullptr) continue;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) file = name;
  }
  if (library == nullptr) return missing(cat(file, " is not found"));
  auto api = std::make_unique<MatmulApi>();
  api->cublaslt = row.family == "cuda";
  if (const char* const lacks = resolve(library, *api); lacks != nullptr)
    return missing(cat(file, " has no ", lacks, ", so it is too old"));
  api->name = row.name;
  api->version = version_of(library, *api);
  if (api->version.empty()) return missing(cat(file, " does not say its version"));
  return api.release();  // the table and its library are never freed, since they are used until the process ends
}

// Sets an attribute of `object`, a descriptor of the library, by `function`, which is the library's function for this
// kind of descriptor. Returns 0 or the number of an error.
template <class T>
int set(int (*function)(void*, int, const void*, size_t), void* object, int attribute, T value) {
  return function(object, attribute, &value, sizeof value);
}

int number_of(const MatmulApi& api, DType dtype) {
  return dtype == DType::f32 ? api.f32 : dtype == DType::f16 ? api.f16 : api.bf16;
}

absl::Status refused(const MatmulApi& api, int error, std::string_view doing) {
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(cat(api.name, " ", api.version, ": error ", error, " while ", doing));
}

// Of the algorithms that the library proposes and that fit into the workspace, copies the one at index `number` to
// `algorithm`. Returns false if there are fewer algorithms.
template <class Proposed>
bool choose(int number, const std::function<int(int, void*, int*)>& propose, uint64_t* algorithm) {
  Proposed proposed[kMostAlgorithms] = {};
  int found = 0;
  // an error of `propose` means that the library has no algorithm for this product
  if (propose(kMostAlgorithms, proposed, &found) != 0 || found < 0) return false;
  const auto end = std::remove_if(proposed, proposed + std::min(found, kMostAlgorithms), [](const Proposed& one) {
    return one.state != 0 || one.work_bytes > static_cast<size_t>(kMatmulWorkBytes);
  });
  if (number >= end - proposed) return false;
  std::memcpy(algorithm, proposed[number].algorithm, sizeof proposed[number].algorithm);
  return true;
}

}  // namespace

absl::StatusOr<const MatmulApi*> matmul_api(const std::string& name) {
  static const auto* const kCuda = new absl::StatusOr<const MatmulApi*>(open_api(*library_for("cuda")));
  if (name == library_for("cuda")->name) return *kCuda;
  if (name != library_for("hip")->name) return invalid("no library ", name, " of products on GPUs");
  static const auto* const kHip = new absl::StatusOr<const MatmulApi*>(open_api(*library_for("hip")));
  return *kHip;
}

std::string matmul_library_for(const std::string& family, std::string* why) {
  const Library* const row = library_for(family);
  const auto api = row == nullptr ? absl::StatusOr<const MatmulApi*>(invalid("no library for ", family))
                                  : matmul_api(std::string(row->name));
  if (!api.ok() && why != nullptr) *why = std::string(api.status().message());
  return api.ok() ? cat((*api)->name, "=", (*api)->version) : "";
}

absl::StatusOr<std::unique_ptr<MatmulProduct>> MatmulProduct::describe(const MatmulApi& api, const MatmulCall& call) {
  std::unique_ptr<MatmulProduct> product(new MatmulProduct(api, call));
  WL_RETURN_IF_ERROR(product->add_layout(kA, call.a, call.factors));
  WL_RETURN_IF_ERROR(product->add_layout(kB, call.b, call.factors));
  WL_RETURN_IF_ERROR(product->add_layout(kC, call.c.value_or(call.d), call.result));
  WL_RETURN_IF_ERROR(product->add_layout(kD, call.d, call.result));
  WL_RETURN_IF_ERROR(product->set_operation());
  WL_RETURN_IF_ERROR(product->set_wishes());
  return product;
}

absl::Status MatmulProduct::add_layout(Matrix which, const MatmulMatrix& matrix, DType dtype) {
  int error = api_.layout_create(&layouts_[which], number_of(api_, dtype), static_cast<uint64_t>(matrix.rows),
                                 static_cast<uint64_t>(matrix.columns), matrix.leading);
  if (error == 0 && call_.batch > 1)
    error = set(api_.layout_set, layouts_[which], api_.batch_count, static_cast<int32_t>(call_.batch));
  if (error == 0 && call_.batch > 1) error = set(api_.layout_set, layouts_[which], api_.batch_step, matrix.step);
  return refused(api_, error, "describing a matrix");
}

absl::Status MatmulProduct::set_operation() {
  int error = api_.product_create(&product_, call_.tf32 ? api_.compute_tf32 : api_.compute_f32, api_.f32);
  const auto also = [&](int attribute, auto value) {
    if (error == 0) error = set(api_.product_set, product_, attribute, value);
  };
  if (call_.a_transposed) also(api_.transpose_a, static_cast<int32_t>(api_.transposed));
  if (call_.b_transposed) also(api_.transpose_b, static_cast<int32_t>(api_.transposed));
  int epilogue = (call_.function == MatmulFunction::kRelu       ? api_.relu
                  : call_.function == MatmulFunction::kGeluTanh ? api_.gelu
                                                                : 0) |
                 (call_.bias ? api_.bias : 0);
  also(api_.epilogue, static_cast<uint32_t>(epilogue == 0 ? api_.plain : epilogue));
  if (call_.bias) also(api_.bias_dtype, static_cast<int32_t>(number_of(api_, call_.result)));
  return refused(api_, error, "describing the product");
}

absl::Status MatmulProduct::set_wishes() {
  int error = api_.wish_create(&wish_);
  const auto also = [&](int attribute, auto value) {
    if (error == 0) error = set(api_.wish_set, wish_, attribute, value);
  };
  also(api_.work_bytes, static_cast<uint64_t>(kMatmulWorkBytes));
  const auto alignment = [](const MatmulMatrix& matrix, DType dtype) {
    const auto bytes = static_cast<uint64_t>(matrix.offset * size_of(dtype));
    return static_cast<uint32_t>(bytes == 0 ? kPointerAlignment : std::min(kPointerAlignment, bytes & (~bytes + 1)));
  };
  if (api_.cublaslt) {
    also(kAlignmentOfA, alignment(call_.a, call_.factors));
    also(kAlignmentOfB, alignment(call_.b, call_.factors));
    also(kAlignmentOfC, alignment(call_.c.value_or(call_.d), call_.result));
    also(kAlignmentOfD, alignment(call_.d, call_.result));
  }
  return refused(api_, error, "saying what algorithms may use");
}

MatmulProduct::~MatmulProduct() {
  for (void* layout : layouts_)
    if (layout != nullptr) (void)api_.layout_destroy(layout);
  if (product_ != nullptr) (void)api_.product_destroy(product_);
  if (wish_ != nullptr) (void)api_.wish_destroy(wish_);
}

absl::StatusOr<std::unique_ptr<MatmulKernel>> MatmulKernel::load(const std::string& library, const std::string& text) {
  WL_ASSIGN_OR_RETURN(const MatmulCall call, parse_matmul(text));
  WL_ASSIGN_OR_RETURN(const MatmulApi* const api, matmul_api(library));
  std::unique_ptr<MatmulKernel> kernel(new MatmulKernel);
  WL_ASSIGN_OR_RETURN(kernel->product_, MatmulProduct::describe(*api, call));
  WL_RETURN_IF_ERROR(refused(*api, api->create(&kernel->handle_), "making a handle"));
  MatmulProduct& product = *kernel->product_;
  const auto propose = [&](int most, void* proposed, int* found) {
    return api->propose(kernel->handle_, product.product_, product.layouts_[MatmulProduct::kA],
                        product.layouts_[MatmulProduct::kB], product.layouts_[MatmulProduct::kC],
                        product.layouts_[MatmulProduct::kD], product.wish_, most, proposed, found);
  };
  const bool there = api->cublaslt ? choose<ProposedByCublasLt>(call.algorithm, propose, kernel->algorithm_)
                                   : choose<ProposedByHipblasLt>(call.algorithm, propose, kernel->algorithm_);
  if (!there)
    return absl::OutOfRangeError(
        cat(api->name, " ", api->version, " proposes no algorithm of number ", call.algorithm, " for this product"));
  return kernel;
}

MatmulKernel::~MatmulKernel() {
  if (handle_ != nullptr) (void)product_->api_.destroy(handle_);
}

absl::Status MatmulKernel::launch(std::span<void*> arguments, void* stream) const {
  const MatmulCall& call = product_->call_;
  const MatmulApi& api = product_->api_;
  const size_t values = arguments.size() < 2 ? 0 : arguments.size() - 2;
  const auto pointer = [&](size_t number) { return *static_cast<char**>(arguments[number]); };
  const auto there = [&](const std::optional<MatmulMatrix>& m) {
    return !m || static_cast<size_t>(m->argument) < values;
  };
  if (!there(call.a) || !there(call.b) || !there(call.c) || !there(call.d) || !there(call.bias))
    return invalid("the kernel of ", api.name, " has ", values, " arguments, but reads or writes one beyond them");
  const auto data = [&](const MatmulMatrix& m, DType dtype) {
    return pointer(static_cast<size_t>(m.argument)) + m.offset * size_of(dtype);
  };
  const auto alpha = static_cast<float>(call.alpha);
  const float beta = call.c ? 1 : 0;
  char* const d = data(call.d, call.result);
  const std::lock_guard lock(mutex_);
  if (call.bias) {
    const void* const bias = data(*call.bias, call.result);
    WL_RETURN_IF_ERROR(refused(api, set(api.product_set, product_->product_, api.bias_pointer, bias), "giving a bias"));
  }
  return refused(
      api,
      api.multiply(handle_, product_->product_, &alpha, data(call.a, call.factors),
                   product_->layouts_[MatmulProduct::kA], data(call.b, call.factors),
                   product_->layouts_[MatmulProduct::kB], &beta, call.c ? data(*call.c, call.result) : d,
                   product_->layouts_[MatmulProduct::kC], d, product_->layouts_[MatmulProduct::kD], algorithm_,
                   pointer(values) + kCounterBytes, static_cast<size_t>(kMatmulWorkBytes), stream),
      "multiplying");
}

}  // namespace wl
