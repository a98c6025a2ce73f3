// A group in the form that libraries take: a matrix product or a convolution, whose inputs are read as they are,
// followed by functions of the result alone and by operations that read one more input each.
#pragma once

#include <optional>
#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Functions of one value x, by the names that libraries have for them. kLinear: alpha * x + beta. kClip: x clipped to
// [alpha, beta]. kRelu: x, but alpha * x below 0. kElu: x, but alpha * (exp(x) - 1) below 0. kSwish: x * sigmoid(alpha
// * x).
enum class Activation : uint8_t {
  kLinear,
  kRelu,
  kClip,
  kTanh,
  kSigmoid,
  kGeluErf,
  kGeluTanh,
  kSwish,
  kHardSwish,
  kElu,
  kExp,
  kAbs,
  kSquare,
};
struct Activated {
  Activation what = Activation::kLinear;
  double alpha = 0, beta = 0;
};

// A tensor that is read or written, with its strides along the loops of the product.
struct ProductTensor {
  NodeId input = -1;  // -1: the tensor is the output
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by atom of the domain
};

struct PostStep {
  std::optional<Activated> activation;  // a function of the result; if absent, `op`
  Op op = Op::add;                      // result = op(result, tensor)
  ProductTensor tensor;
};

// One axis of an image that the window of a convolution slides along. `output` and `tap` are the atoms (loops) over the
// outputs and over the window's taps; -1 where there is no such loop. `before` is the padding before the image.
struct SlidingLoop {
  AtomId output = -1, tap = -1;
  int64_t extent = 1, stride = 1, dilation = 1, before = 0, image_stride = 0;
};

struct Product {
  DType factors = DType::f32, type = DType::f32;  // of left and right; of the result
  ProductTensor left, right, result;              // left does not move along columns, right not along rows
  std::vector<PostStep> post;
  // A convolution: left is the weights, right the image, and the rows are the output channels.
  bool convolution = false;
  AtomId image = -1, channel = -1;  // loops over the batch and the summed channels; -1: extent 1
  SlidingLoop height, width;
};

// The dtypes that a library's products may have. kSingle: f32 throughout. kHalves: also factors of f16 or bf16, with a
// result of the same type or of f32. Sums are always of f32. In the graph, values between the product and the result
// may be rounded to any of these types; libraries round only the result.
enum class ProductTypes : uint8_t { kSingle, kHalves };

// The group as a product; nullopt where it is not a product of this form.
std::optional<Product> product_of(const Graph& group, const Domain& domain, ProductTypes types = ProductTypes::kSingle);

// The function f of one value for which result = f(value); everything between the two nodes must be a function of
// `value` and of constants. nullopt where no name of Activation fits. The function is found by trying values, so it
// does not matter how the graph writes it.
std::optional<Activated> activation_between(const Graph& group, const Domain& domain, NodeId value, NodeId result);

}  // namespace wl
