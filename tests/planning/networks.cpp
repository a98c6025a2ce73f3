#include "tests/planning/networks.h"

#include <numeric>

#include "compiler/base/splitmix.h"
#include "compiler/ir/build.h"

namespace wl::testing {
namespace {

class Network {
 public:
  explicit Network(uint64_t seed) : state_(seed) {}

  Graph make() {
    dtype_ = pick({DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16});
    NodeId last = 0;
    switch (below(5)) {
      case 0:
      case 1:
        last = image_network();
        break;
      case 2:
      case 3:
        last = sequence_network();
        break;
      default:
        last = rows_network();
    }
    b_.output("out", last);
    for (size_t i = 0; i < further_.size(); ++i) b_.output("further" + std::to_string(i), further_[i]);
    absl::StatusOr<Graph> graph = b_.finish();
    WL_CHECK(graph.ok(), graph.status().ToString());
    return *std::move(graph);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(split_mix(state_) % static_cast<uint64_t>(n)); }
  bool once_in(int64_t n) { return below(n) == 0; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  Shape shape(NodeId x) const { return b_.node(x).shape; }  // a copy, since adding a node may move the others
  NodeId parameter(Shape of) { return b_.input("p" + std::to_string(parameters_++), dtype_, std::move(of)); }
  // Broadcasts a vector, which lies along `axis` of x, to the shape of x.
  NodeId along(NodeId vector, NodeId x, int64_t axis) { return b_.broadcast(vector, shape(x), {axis}); }
  NodeId channelwise(Op op, NodeId x, int64_t axis) {
    return b_.elementwise(op, {x, along(parameter({shape(x)[axis]}), x, axis)});
  }

  NodeId activation(NodeId x) {
    switch (below(6)) {
      case 0:
      case 1:
        return b_.elementwise(Op::max, {x, b_.constant_like(0, x)});
      case 2:
        return b_.mul(x, b_.elementwise(Op::sigmoid, {x}));
      case 3:
        return b_.mul(
            b_.mul(x, b_.constant_like(0.5, x)),
            b_.add(b_.elementwise(Op::erf, {b_.mul(x, b_.constant_like(0.7071, x))}), b_.constant_like(1, x)));
      case 4:
        return b_.elementwise(Op::tanh, {x});
      default:
        return x;
    }
  }

  NodeId batch_norm(NodeId x) {
    const NodeId variance = parameter({shape(x)[1]});
    const NodeId scale = b_.elementwise(Op::rsqrt, {b_.add(variance, b_.constant_like(1e-5, variance))});
    x = channelwise(Op::sub, x, 1);
    x = b_.mul(x, along(scale, x, 1));
    return channelwise(Op::add, channelwise(Op::mul, x, 1), 1);
  }

  // Normalises x over `axes` as a normalisation layer does, sometimes without its mean or its bias. The layer's scale
  // and bias are vectors along `axis`.
  NodeId norm(NodeId x, const std::vector<int64_t>& axes, int64_t axis) {
    double count = 1;
    for (int64_t a : axes) count *= static_cast<double>(shape(x)[a]);
    const auto mean = [&](NodeId of) {
      const NodeId sum = b_.reduce_keep(Op::reduce_sum, of, axes);
      return b_.div(sum, b_.constant_like(count, sum));
    };
    if (!once_in(3)) x = b_.sub(x, mean(x));
    const NodeId variance = mean(b_.mul(x, x));
    x = b_.mul(x, b_.elementwise(Op::rsqrt, {b_.add(variance, b_.constant_like(1e-5, variance))}));
    x = channelwise(Op::mul, x, axis);
    return once_in(3) ? x : channelwise(Op::add, x, axis);
  }

  NodeId softmax(NodeId x) {
    const std::vector<int64_t> last = {static_cast<int64_t>(shape(x).size()) - 1};
    x = b_.elementwise(Op::exp, {b_.sub(x, b_.reduce_keep(Op::reduce_max, x, last))});
    return b_.div(x, b_.reduce_keep(Op::reduce_sum, x, last));
  }

  NodeId pad(NodeId x, int64_t by, double value) {
    if (by == 0) return x;
    return b_.add_node(
        {.op = Op::pad, .operands = {x}, .ints = {0, 0, by, by}, .ints2 = {0, 0, by, by}, .value = value});
  }
  NodeId window(NodeId x, int64_t size, int64_t stride, int64_t dilation) {
    return b_.add_node(
        {.op = Op::window, .operands = {x}, .ints = {2, 3}, .ints2 = {size, stride, dilation, size, stride, dilation}});
  }
  NodeId concat(std::vector<NodeId> parts, int64_t axis) {
    return b_.add_node({.op = Op::concat, .operands = std::move(parts), .ints = {axis}});
  }

  // Convolves x, which is [batch, channels, height, width].
  NodeId convolution(NodeId x, int64_t channels) {
    int64_t size = pick<int64_t>({3, 3, 3, 1, 1, 5, 7, 2}), dilation = once_in(6) ? 2 : 1;
    const int64_t padding = once_in(3) ? 0 : dilation * (size - 1) / 2;
    const auto fits = [&] { return std::min(shape(x)[2], shape(x)[3]) + 2 * padding > dilation * (size - 1); };
    if (!fits()) size = dilation = 1;
    const int64_t stride = once_in(3) ? 2 : 1;
    const int64_t in = shape(x)[1];
    const NodeId windows = window(pad(x, size == 1 ? 0 : padding, 0), size, stride, dilation);
    if (once_in(6)) return b_.contract(windows, parameter({in, size, size}), "acpqhi,chi->acpq");
    const int64_t groups = in % 4 == 0 && channels % 4 == 0 && once_in(6) ? 4 : 1;
    if (groups == 1) return b_.contract(windows, parameter({channels, in, size, size}), "acpqhi,ochi->aopq");
    const Shape& w = shape(windows);
    const NodeId divided = b_.reshape(windows, {w[0], groups, in / groups, w[2], w[3], size, size});
    const NodeId made =
        b_.contract(divided, parameter({groups, channels / groups, in / groups, size, size}), "agcpqhi,gochi->agopq");
    return b_.reshape(made, {w[0], channels, w[2], w[3]});
  }

  NodeId pool(NodeId x) {
    const int64_t size = pick<int64_t>({2, 2, 3}), stride = pick<int64_t>({2, 2, 1});
    if (std::min(shape(x)[2], shape(x)[3]) < size) return x;
    if (once_in(2)) return b_.reduce(Op::reduce_max, window(x, size, stride, 1), {4, 5});
    const NodeId sum = b_.reduce(Op::reduce_sum, window(x, size, stride, 1), {4, 5});
    return b_.div(sum, b_.constant_like(static_cast<double>(size * size), sum));
  }

  NodeId image_block(NodeId x) {
    const NodeId before = x;
    x = convolution(x, once_in(3) ? shape(x)[1] : pick<int64_t>({8, 16, 32, 64, 24, 10, 3, 128}));
    if (!once_in(4)) x = batch_norm(x);
    if (once_in(6)) x = norm(x, {1, 2, 3}, 1);
    x = activation(x);
    if (shape(x) == shape(before) && once_in(2)) x = b_.add(x, before);
    if (shape(x)[0] == shape(before)[0] && shape(x)[2] == shape(before)[2] && shape(x)[3] == shape(before)[3] &&
        shape(x) != shape(before) && once_in(4))
      x = concat({x, before}, 1);
    if (once_in(3)) x = pool(x);
    if (once_in(6)) x = squeeze_and_excite(x);
    return x;
  }

  NodeId mean_of_image(NodeId x) {
    const double count = static_cast<double>(shape(x)[2] * shape(x)[3]);
    const NodeId sum = b_.reduce(once_in(5) ? Op::reduce_max : Op::reduce_sum, x, {2, 3});
    return b_.div(sum, b_.constant_like(count, sum));
  }

  NodeId squeeze_and_excite(NodeId x) {
    const NodeId gate =
        linear(activation(linear(mean_of_image(x), std::max<int64_t>(1, shape(x)[1] / 4))), shape(x)[1]);
    return b_.mul(x, b_.broadcast(b_.elementwise(Op::sigmoid, {gate}), shape(x), {0, 1}));
  }

  NodeId image_network() {
    const int64_t side = pick<int64_t>({8, 14, 28, 32, 56, 64, 224, 7, 13, 33, 65}),
                  other = once_in(4) ? pick<int64_t>({5, 17, 48, 97}) : side;
    NodeId x = parameter({pick<int64_t>({1, 1, 2, 3, 8, 16, 32}), pick<int64_t>({3, 1, 3, 16, 32, 5}), side, other});
    for (int64_t i = 1 + below(5); i > 0; --i) x = image_block(x);
    if (once_in(3)) return x;
    if (once_in(2)) return linear(mean_of_image(x), pick<int64_t>({10, 100, 7}));
    const Shape& s = shape(x);
    if (s[1] * s[2] * s[3] > 100'000) return x;
    return linear(b_.reshape(x, {s[0], s[1] * s[2] * s[3]}), pick<int64_t>({10, 1000, 3}));
  }

  // Multiplies the last axis of x by a weight matrix, and sometimes adds a bias.
  NodeId linear(NodeId x, int64_t features) {
    const int64_t in = shape(x).back();
    const std::string of = std::string("abcdefg").substr(0, shape(x).size() - 1);
    x = once_in(2) ? b_.contract(x, parameter({in, features}), of + "k," + "kn->" + of + "n", dtype_)
                   : b_.contract(x, parameter({features, in}), of + "k," + "nk->" + of + "n", dtype_);
    return once_in(4) ? x : channelwise(Op::add, x, static_cast<int64_t>(shape(x).size()) - 1);
  }

  NodeId attention(NodeId x) {
    const int64_t batch = shape(x)[0], length = shape(x)[1], width = shape(x)[2];
    int64_t heads = pick<int64_t>({1, 2, 4, 8, 12, 3});
    while (width % heads != 0) --heads;
    const int64_t each = width / heads;
    const auto divided = [&](NodeId of) {
      return b_.transpose(b_.reshape(linear(of, width), {batch, length, heads, each}), {0, 2, 1, 3});
    };
    const NodeId q = divided(x), k = divided(x), v = divided(x);
    NodeId scores = b_.contract(q, k, "bhqd,bhkd->bhqk", dtype_);
    scores = b_.mul(scores, b_.constant_like(0.125, scores));
    if (once_in(3)) {
      const NodeId row = b_.iota(DType::i32, shape(scores), 2), column = b_.iota(DType::i32, shape(scores), 3);
      scores =
          b_.elementwise(Op::select, {b_.elementwise(Op::ge, {row, column}), scores, b_.constant_like(-1e4, scores)});
    } else if (once_in(3)) {
      scores = b_.add(scores, b_.broadcast(parameter({batch, length}), shape(scores), {0, 3}));
    }
    const NodeId mixed = b_.contract(softmax(scores), v, "bhqk,bhkd->bhqd", dtype_);
    return linear(b_.reshape(b_.transpose(mixed, {0, 2, 1, 3}), {batch, length, width}), width);
  }

  NodeId sequence_network() {
    const int64_t width = pick<int64_t>({16, 64, 96, 128, 256, 768, 33, 100});
    const int64_t length = pick<int64_t>({1, 7, 16, 50, 77, 128, 197, 512, 1000});
    NodeId x = parameter({pick<int64_t>({1, 1, 2, 4, 8, 3}), length, width});
    for (int64_t i = 1 + below(3); i > 0; --i) {
      const bool first = once_in(2);
      NodeId y = first ? norm(x, {2}, 2) : x;
      x = b_.add(x, once_in(5) ? linear(y, width) : attention(y));
      if (!first) x = norm(x, {2}, 2);
      y = linear(activation(linear(x, 4 * width)), width);
      if (!once_in(4)) x = b_.add(x, y);
      if (once_in(4)) further_.push_back(x);
    }
    if (once_in(4)) return softmax(linear(x, pick<int64_t>({10, 1000, 5})));
    if (once_in(4)) return b_.reduce(pick({Op::reduce_sum, Op::reduce_max}), x, {below(3)});
    return x;
  }

  NodeId rows_network() {
    const int64_t width = pick<int64_t>({1, 3, 17, 64, 100, 255, 1024, 4097, 30000});
    NodeId x = parameter({pick<int64_t>({1, 2, 31, 64, 127, 1000}), width});
    for (int64_t i = 1 + below(6); i > 0; --i) {
      switch (below(8)) {
        case 0:
          x = softmax(x);
          break;
        case 1:
          x = norm(x, {1}, 1);
          break;
        case 2:
          x = activation(linear(x, pick<int64_t>({1, 10, 64, 129, 512})));
          break;
        case 3:
          x = b_.transpose(x, {1, 0});
          break;
        case 4:
          x = concat({x, activation(x)}, below(2));
          break;
        case 5:
          x = b_.sub(x, b_.reduce_keep(pick({Op::reduce_sum, Op::reduce_max, Op::reduce_min}), x, {below(2)}));
          break;
        case 6:
          further_.push_back(
              b_.reduce(Op::reduce_sum, x, once_in(3) ? std::vector<int64_t>{0, 1} : std::vector{below(2)}));
          break;
        default:
          x = gate(x);
      }
    }
    return x;
  }

  // A gate as in recurrent cells: a linear layer, the sigmoid of one half of its features times tanh of the other half.
  NodeId gate(NodeId x) {
    const int64_t rows = shape(x)[0], width = shape(x)[1];
    const NodeId both = linear(x, 2 * width);
    const NodeId a = b_.slice(both, {0, 0}, {1, 1}, {rows, width}),
                 c = b_.slice(both, {0, width}, {1, 1}, {rows, width});
    return b_.mul(b_.elementwise(Op::sigmoid, {a}), b_.elementwise(Op::tanh, {c}));
  }

  uint64_t state_;
  Builder b_;
  DType dtype_ = DType::f32;
  int parameters_ = 0;
  std::vector<NodeId> further_;  // outputs of the network in addition to its last value
};

}  // namespace

Graph random_network(uint64_t seed) {
  return Network(seed).make();
}

}  // namespace wl::testing
