// A library of matrix products for the fake drivers. It is built as cuBLASLt and as hipBLASLt, with the functions that
// Warploom calls. Like the real libraries, it refuses attributes of a wrong length. It proposes three algorithms, of
// which the second cannot be used. With WARPLOOM_FAKE_BLAS=wrong its sums lack the last product, and with
// WARPLOOM_FAKE_BLAS=silent it does not return its version.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "compiler/base/fill.h"
#include "runtime/matmul_tables.h"

namespace {

enum Status { kOk = 0, kInvalidValue = 7, kNotSupported = 15 };
enum Type { kF32 = 0, kF16 = 2, kBf16 = 14 };
enum Epilogue : uint32_t { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };

// An object of the library (a matrix layout, a product or a preference): the arguments with which it was created, and
// its attributes by number.
struct Object {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  std::map<int, uint64_t> attributes;
  uint64_t attribute(int number, uint64_t otherwise) const {
    const auto at = attributes.find(number);
    return at == attributes.end() ? otherwise : at->second;
  }
};

// The numbers of attributes in one of the two APIs and, for each kind of object, a map from an attribute's number to
// the length of its value in bytes.
struct Numbers {
  int batch_count, batch_step;                                            // attribute numbers of matrix layouts
  int transpose_a, transpose_b, epilogue, bias_pointer, bias_type, op_t;  // attribute numbers of products
  std::map<int, size_t> layout, product, wish;
};
const Numbers kCublasLt = {5,
                           6,
                           3,
                           4,
                           7,
                           8,
                           26,
                           1,
                           {{5, 4}, {6, 8}},
                           {{3, 4}, {4, 4}, {7, 4}, {8, 8}, {26, 4}},
                           {{1, 8}, {5, 4}, {6, 4}, {7, 4}, {8, 4}}};
const Numbers kHipblasLt = {0,       1, 0, 1, 2, 3, 4, 112, {{0, 4}, {1, 8}}, {{0, 4}, {1, 4}, {2, 4}, {3, 8}, {4, 4}},
                            {{1, 8}}};

int set(void* object, const std::map<int, size_t>& known, int number, const void* value, size_t bytes) {
  const auto row = known.find(number);
  if (object == nullptr || row == known.end() || row->second != bytes) return kInvalidValue;
  uint64_t word = 0;
  std::memcpy(&word, value, bytes);
  static_cast<Object*>(object)->attributes[number] = word;
  return kOk;
}

bool mode(const char* name) {
  const char* const is = std::getenv("WARPLOOM_FAKE_BLAS");
  return is != nullptr && std::strcmp(is, name) == 0;
}

wl::DType dtype_of(int type) {
  return type == kF32 ? wl::DType::f32 : type == kF16 ? wl::DType::f16 : wl::DType::bf16;
}

float read(const void* data, int64_t at, int type) {
  return static_cast<float>(wl::load_element(dtype_of(type), data, static_cast<uint64_t>(at)));
}

void write(void* data, int64_t at, int type, float value) {
  wl::store_element(dtype_of(type), data, static_cast<uint64_t>(at), value);
}

float function(float x, uint32_t epilogue) {
  if ((epilogue & kRelu) != 0) return x > 0 ? x : 0;
  if ((epilogue & kGelu) == 0) return x;
  return 0.5f * x * (1 + __builtin_tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

struct Multiplication {
  const Numbers& numbers;
  Object product, layouts[4];  // layouts of the matrices a, b, c and d
  const void* data[3];
  void* result;
  float alpha, beta;

  int run() const {
    const Object &a = layouts[0], &b = layouts[1], &c = layouts[2], &d = layouts[3];
    const bool turn_a = product.attribute(numbers.transpose_a, 0) == static_cast<uint64_t>(numbers.op_t);
    const bool turn_b = product.attribute(numbers.transpose_b, 0) == static_cast<uint64_t>(numbers.op_t);
    const auto epilogue = static_cast<uint32_t>(product.attribute(numbers.epilogue, kDefault));
    const auto* const bias = reinterpret_cast<const void*>(product.attribute(numbers.bias_pointer, 0));
    const auto bias_type = static_cast<int>(product.attribute(numbers.bias_type, static_cast<uint64_t>(d.type)));
    const auto depth = static_cast<int64_t>(turn_a ? a.rows : a.columns) - (mode("wrong") ? 1 : 0);
    const auto base = [&](const Object& of, int64_t member) {
      return member * static_cast<int64_t>(of.attribute(numbers.batch_step, 0));
    };
    for (int64_t m = 0; m < static_cast<int64_t>(d.attribute(numbers.batch_count, 1)); ++m)
      for (int64_t column = 0; column < static_cast<int64_t>(d.columns); ++column)
        for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
          float sum = 0;
          for (int64_t k = 0; k < depth; ++k)
            sum += read(data[0], base(a, m) + (turn_a ? k + row * a.leading : row + k * a.leading), a.type) *
                   read(data[1], base(b, m) + (turn_b ? column + k * b.leading : k + column * b.leading), b.type);
          float value = alpha * sum;
          if (beta != 0) value += beta * read(data[2], base(c, m) + row + column * c.leading, c.type);
          if ((epilogue & kBias) != 0) value += read(bias, row, bias_type);
          write(result, base(d, m) + row + column * d.leading, d.type, function(value, epilogue));
        }
    return 0;
  }
};

// Puts the work into a stream of the fake driver, which executes it at once or later.
int put(const char* driver, void* stream, const Multiplication& work) {
  void* const library = dlopen(driver, RTLD_NOW | RTLD_NOLOAD);
  using Put = int(void*, const std::function<int()>&);
  auto* const function = library == nullptr ? nullptr : reinterpret_cast<Put*>(dlsym(library, "fake_gpu_put"));
  return function == nullptr ? kNotSupported : function(stream, [work] { return work.run(); });
}

template <class Proposed>
int propose(const Object& d, int most, void* out, int* found) {
  if (d.type != kF32 && d.type != kF16 && d.type != kBf16) return kNotSupported;
  auto* const all = static_cast<Proposed*>(out);
  for (*found = 0; *found < most && *found < 3; ++*found) {
    all[*found] = {};
    all[*found].algorithm[0] = static_cast<uint64_t>(*found) + 1;
    all[*found].state = *found == 1 ? kNotSupported : kOk;
  }
  return kOk;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names of the vendors' libraries
extern "C" {

size_t cublasLtGetVersion() {
  return mode("silent") ? 0 : 139'900;
}
int hipblasLtGetVersion(void*, int* version) {
  *version = mode("silent") ? 0 : 9'900;
  return kOk;
}

#define WL_BLAS(prefix, numbers, Proposed, driver)                                                              \
  int prefix##Create(void** handle) {                                                                           \
    *handle = new Object;                                                                                       \
    return kOk;                                                                                                 \
  }                                                                                                             \
  int prefix##Destroy(void* handle) {                                                                           \
    delete static_cast<Object*>(handle);                                                                        \
    return kOk;                                                                                                 \
  }                                                                                                             \
  int prefix##MatrixLayoutCreate(void** out, int type, uint64_t rows, uint64_t columns, int64_t leading) {      \
    *out = new Object{type, rows, columns, leading, {}};                                                        \
    return kOk;                                                                                                 \
  }                                                                                                             \
  int prefix##MatrixLayoutSetAttribute(void* of, int number, const void* value, size_t bytes) {                 \
    return set(of, (numbers).layout, number, value, bytes);                                                     \
  }                                                                                                             \
  int prefix##MatrixLayoutDestroy(void* of) {                                                                   \
    return prefix##Destroy(of);                                                                                 \
  }                                                                                                             \
  int prefix##MatmulDescCreate(void** out, int, int) {                                                          \
    return prefix##Create(out);                                                                                 \
  }                                                                                                             \
  int prefix##MatmulDescSetAttribute(void* of, int number, const void* value, size_t bytes) {                   \
    return set(of, (numbers).product, number, value, bytes);                                                    \
  }                                                                                                             \
  int prefix##MatmulDescDestroy(void* of) {                                                                     \
    return prefix##Destroy(of);                                                                                 \
  }                                                                                                             \
  int prefix##MatmulPreferenceCreate(void** out) {                                                              \
    return prefix##Create(out);                                                                                 \
  }                                                                                                             \
  int prefix##MatmulPreferenceSetAttribute(void* of, int number, const void* value, size_t bytes) {             \
    return set(of, (numbers).wish, number, value, bytes);                                                       \
  }                                                                                                             \
  int prefix##MatmulPreferenceDestroy(void* of) {                                                               \
    return prefix##Destroy(of);                                                                                 \
  }                                                                                                             \
  int prefix##MatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void* d, void*, int most, void* out,    \
                                     int* found) {                                                              \
    return propose<Proposed>(*static_cast<Object*>(d), most, out, found);                                       \
  }                                                                                                             \
  int prefix##Matmul(void*, void* product, const void* alpha, const void* a, void* la, const void* b, void* lb, \
                     const void* beta, const void* c, void* lc, void* d, void* ld, const void*, void*, size_t,  \
                     void* stream) {                                                                            \
    const auto of = [](void* object) { return *static_cast<Object*>(object); };                                 \
    return put(driver, stream,                                                                                  \
               {numbers,                                                                                        \
                of(product),                                                                                    \
                {of(la), of(lb), of(lc), of(ld)},                                                               \
                {a, b, c},                                                                                      \
                d,                                                                                              \
                *static_cast<const float*>(alpha),                                                              \
                *static_cast<const float*>(beta)});                                                             \
  }

WL_BLAS(cublasLt, kCublasLt, wl::ProposedByCublasLt, "libcuda.so.1")
WL_BLAS(hipblasLt, kHipblasLt, wl::ProposedByHipblasLt, "libamdhip64.so.6")

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
