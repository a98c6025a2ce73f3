// A group as libraries of products take one: a matrix product or a convolution of inputs that are read as they are,
// followed by functions of the result alone and by operations with one more input each.
#pragma once

#include <optional>
#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Names of functions of one value, as libraries have them; kLinear: alpha * x + beta, kClip: between alpha and beta,
// kRelu and kElu: with alpha below 0, kSwish: x * sigmoid(alpha * x).
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

// A tensor that is read or written, by its strides along the loops of the product.
struct ProductTensor {
  NodeId input = -1;  // -1: the output
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by atom of the domain
};

struct PostStep {
  std::optional<Activated> activation;  // else `op`
  Op op = Op::add;                      // result = op(result, tensor)
  ProductTensor tensor;
};

// A loop that a window slides along, by its atoms; -1: it does not turn.
struct SlidingLoop {
  AtomId output = -1, tap = -1;
  int64_t extent = 1, stride = 1, dilation = 1, before = 0, image_stride = 0;
};

struct Product {
  DType factors = DType::f32, type = DType::f32;  // of left and right; of the result
  ProductTensor left, right, result;              // left does not move along columns, right not along rows
  std::vector<PostStep> post;
  // A convolution: left is the weights, right the image, rows the channels that it makes; -1 where there is one.
  bool convolution = false;
  AtomId image = -1, channel = -1;  // of the batch, and of the sum
  SlidingLoop height, width;
};

// Which types a library's products have: f32 throughout, or also factors of f16 or bf16, whose result is of their type
// or of f32. Sums are of f32. Values between the product and the result may be rounded to any of these, which libraries
// do once.
enum class ProductTypes : uint8_t { kSingle, kHalves };

// nullopt: the group is no such product.
std::optional<Product> product_of(const Graph& group, const Domain& domain, ProductTypes types = ProductTypes::kSingle);

// The function of one value that `result` is of `value`; all between them are functions of it and of constants. nullopt
// where none of the names fits. Found by trying values, so it does not depend on how the function is written.
std::optional<Activated> activation_between(const Graph& group, const Domain& domain, NodeId value, NodeId result);

}  // namespace wl
