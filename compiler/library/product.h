// Describes a group in the form that kernel libraries take: a matrix product or a convolution, whose inputs are read
// unchanged, followed by steps. A step is a function of the result so far, or an operation on it and one more input.
#pragma once

#include <optional>
#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Functions of one value x, with the names that libraries give them. kLinear: alpha * x + beta. kClip: x clipped to
// [alpha, beta]. kRelu: x, but alpha * x if x < 0. kElu: x, but alpha * (exp(x) - 1) if x < 0. kSwish: x *
// sigmoid(alpha * x).
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
  NodeId input = -1;  // the input node that is read; -1: the tensor is the output
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one stride in elements for each atom of the domain
};

struct PostStep {
  std::optional<Activated> activation;  // the step as a function of the result so far; nullopt: the step applies `op`
  Op op = Op::add;                      // for a step without `activation`: result = op(result, tensor)
  ProductTensor tensor;
};

// One axis of an image along which the window of a convolution slides. `output` and `tap` are the atoms (loops) over
// the outputs and over the window's taps; -1: there is no such loop. `before` is the padding before the image.
struct SlidingLoop {
  AtomId output = -1, tap = -1;
  int64_t extent = 1, stride = 1, dilation = 1, before = 0, image_stride = 0;
};

struct Product {
  DType factors = DType::f32, type = DType::f32;  // the dtype of left and right, and that of the result
  // `left` has stride 0 along the loops over the result's columns, `right` along those over its rows.
  ProductTensor left, right, result;
  std::vector<PostStep> post;
  // Whether this is a convolution: `left` contains its weights, `right` is the image, and the rows are the output
  // channels.
  bool convolution = false;
  // The loops over the images of the batch and over the input channels, which are summed; -1: no such loop.
  AtomId image = -1, channel = -1;
  SlidingLoop height, width;
};

// The dtypes that a library's products may have. kSingle: f32 only. kHalves: also factors of f16 or bf16 with a result
// of the same dtype or of f32. Sums are accumulated in f32. In the graph, values between the product and the result may
// be rounded to any of these dtypes; libraries round only the result.
enum class ProductTypes : uint8_t { kSingle, kHalves };

// Returns the group as a product with its steps; nullopt if the group does not have this form.
std::optional<Product> product_of(const Graph& group, const Domain& domain, ProductTypes types = ProductTypes::kSingle);

// Returns the function f for which the node `result` is f(value). All nodes between `value` and `result` must depend on
// `value` and constants only. Returns nullopt if no function of Activation fits. The function is recognised by its
// values, so it does not matter by which ops the graph computes it.
std::optional<Activated> activation_between(const Graph& group, const Domain& domain, NodeId value, NodeId result);

}  // namespace wl
