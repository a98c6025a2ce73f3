// Ops of the domain com.microsoft, which onnxruntime's optimiser and its exporters create by fusing other ops.
#include <algorithm>
#include <cmath>

#include "compiler/import/rows/attention.h"

namespace wl::onnx_import {
namespace {

T activated(Call& c, T x) {
  const std::string name = c.attr_text("activation", "");
  const auto parameters = c.attr_numbers("activation_params");
  const auto parameter = [&](std::string_view attribute, size_t i, double otherwise) {
    return i < parameters.size() ? parameters[i] : c.attr_number(attribute, otherwise);
  };
  if (name.empty()) return x;
  if (name == "Relu") return apply(Op::max, {x, 0.0});
  if (name == "Tanh") return apply(Op::tanh, {x});
  if (name == "Sigmoid") return apply(Op::sigmoid, {x});
  if (name == "Softplus") return softplus(x);
  if (name == "Gelu") return gelu_erf(x);
  if (name == "LeakyRelu") {
    return select(apply(Op::lt, {x, 0.0}), x * parameter("activation_alpha", 0, 0.01), x);
  }
  if (name == "Clip") {
    return apply(Op::min, {apply(Op::max, {x, parameter("activation_min", 0, -3.4e38)}),
                           parameter("activation_max", 1, 3.4e38)});
  }
  if (name == "HardSigmoid") {
    const T line = x * parameter("activation_alpha", 0, 0.2) + parameter("activation_beta", 1, 0.5);
    return apply(Op::max, {apply(Op::min, {line, 1.0}), 0.0});
  }
  c.missing("activation '", name, "' is not supported");
}

// Adds the node's mask input `given` to `mask`. If `given` has shape [batch], it says how many keys each batch element
// may use. Otherwise its shape is [batch, keys], [batch, queries, keys] or [batch, 1, queries or more, keys], and a 0
// in it hides a key.
void apply_mask(Call& c, Mask& mask, T given, int64_t batch, int64_t queries, int64_t keys) {
  if (given.rank() == 1 && given.extent(0) == batch) {
    const T length = reshape(cast(given, DType::i64), {batch, 1, 1, 1});
    return mask.allow(apply(Op::lt, {c.iota(DType::i64, {keys}, 0), length}));
  }
  const T shown = given.dtype() == DType::b1 ? given : apply(Op::ne, {given, 0.0});
  if (given.rank() == 2 && given.extent(1) == keys) return mask.allow(reshape(shown, {given.extent(0), 1, 1, keys}));
  if (given.rank() == 3 && given.extent(2) == keys) return mask.allow(unsqueeze(shown, {1}));
  if (given.rank() == 4 && given.extent(3) == keys && given.extent(2) >= queries) {
    return mask.allow(
        slice_axis(shown, 2, keys - queries <= given.extent(2) - queries ? keys - queries : 0, 1, queries));
  }
  c.missing("a mask of shape ", shape_text(given.shape()), " for ", queries, " queries and ", keys, " keys");
}

T attend(Call& c, T q, T k, T v, const Mask& mask, double scale, bool may_be_empty) {
  const double given = c.attr_number("scale", 0);
  T scores = attention_scores(q * (given == 0 ? scale : given), k);
  if (const double cap = c.attr_number("softcap", 0); cap > 0) scores = apply(Op::tanh, {scores / cap}) * cap;
  return join_heads(attention_values(masked_softmax(mask(scores), may_be_empty), v));
}

double default_scale(T q) {
  return 1 / std::sqrt(static_cast<double>(q.extent(3)));
}

T part(T x, int64_t start, int64_t size) {
  return slice_axis(x, x.rank() - 1, start, 1, size);
}

}  // namespace

T fused_gemm(Call& c) {
  return activated(c, gemm(c));
}

T fused_conv(Call& c) {
  T y = convolution(c, c.in(0), c.in(1));
  if (c.has(2)) y = y + along(c.in(2), 1, y.rank());
  if (c.has(3)) y = y + c.in(3);
  return activated(c, y);
}

T bias_split_gelu(Call& c) {
  const T x = c.in(0) + c.in(1);
  const int64_t half = x.extent(x.rank() - 1) / 2;
  return part(x, 0, half) * gelu_erf(part(x, half, half));
}

// The op Attention of com.microsoft. The inputs of a node are input, weights [inputs, 3 * hidden], bias, mask, past,
// and attention bias.
T attention_ms(Call& c) {
  const T x = c.in(0), w = c.in(1);
  const int64_t heads = c.attr("num_heads", 0);
  if (x.rank() != 3 || w.rank() != 2 || heads < 1)
    c.fail("input ", shape_text(x.shape()), " and weights ", shape_text(w.shape()), " do not fit");
  T all = matmul(x, w);
  if (c.has(2)) all = all + c.in(2);
  auto sizes = c.attr_ints("qkv_hidden_sizes", std::vector<int64_t>(3, w.extent(1) / 3));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] > w.extent(1) ||
      sizes[1] > w.extent(1) || sizes[2] > w.extent(1) || sizes[0] + sizes[1] + sizes[2] != w.extent(1)) {
    c.fail("qkv_hidden_sizes ", shape_text(sizes), " do not fit weights of shape ", shape_text(w.shape()));
  }
  T q = split_heads(part(all, 0, sizes[0]), heads), k = split_heads(part(all, sizes[0], sizes[1]), heads);
  T v = split_heads(part(all, sizes[0] + sizes[1], sizes[2]), heads);
  if (c.attr("do_rotary", 0) != 0) c.missing("attribute do_rotary is not supported");
  int64_t past = 0;
  if (c.has(4)) {
    const T before = c.in(4);  // keys and values of the past: [2, batch, heads, past, size]
    if (before.rank() != 5 || before.extent(0) != 2)
      c.fail("past of shape ", shape_text(before.shape()), " does not fit");
    const Shape s = before.shape();
    const Shape half(s.begin() + 1, s.end());
    past = s[3];
    k = concat({reshape(slice_axis(before, 0, 0, 1, 1), half), k}, 2);
    v = concat({reshape(slice_axis(before, 0, 1, 1, 1), half), v}, 2);
  }
  if (c.wants(1)) c.set(1, concat({unsqueeze(k, {0}), unsqueeze(v, {0})}, 0));
  Mask mask;
  const int64_t queries = q.extent(2), keys = k.extent(2);
  if (c.has(3)) apply_mask(c, mask, c.in(3), x.extent(0), queries, keys);
  if (c.has(5)) mask.add(c.in(5));
  if (c.attr("unidirectional", 0) != 0) {
    mask.allow(apply(Op::ge, {positions_apart(c, queries, keys) + static_cast<double>(past), 0.0}));
  }
  return attend(c, q, k, v, mask, default_scale(q), c.has(3) || c.has(5));
}

// The op MultiHeadAttention of com.microsoft. The inputs of a node are query, key, value, bias, key padding mask,
// attention bias, past key and past value.
T multi_head_attention(Call& c) {
  const int64_t heads = c.attr("num_heads", 0);
  if (heads < 1) c.fail("attribute num_heads is needed");
  T q = c.in(0), k, v;
  if (!c.has(1)) {  // queries, keys and values are packed in input 0: [batch, length, heads, 3, size]
    if (q.rank() != 5 || q.extent(3) != 3) c.fail("a packed input of shape ", shape_text(q.shape()), " does not fit");
    const Shape s = q.shape();
    const T all = q;
    const auto one = [&](int64_t i) { return reshape(slice_axis(all, 3, i, 1, 1), {s[0], s[1], s[2] * s[4]}); };
    q = one(0);
    k = one(1);
    v = one(2);
  } else {
    k = c.in(1);
    if (c.has(2)) {
      v = c.in(2);
    } else if (k.rank() == 5 && k.extent(3) == 2) {
      const Shape s = k.shape();
      const T all = k;
      const auto one = [&](int64_t i) { return reshape(slice_axis(all, 3, i, 1, 1), {s[0], s[1], s[2] * s[4]}); };
      k = one(0);
      v = one(1);
    } else {
      c.fail("input 2, the values, is needed");
    }
  }
  const auto with_bias = [&](T x, int64_t start) { return x + part(c.in(3), start, x.extent(2)); };
  if (q.rank() != 3) c.missing("queries of shape ", shape_text(q.shape()));
  if (c.has(3)) {
    const int64_t width = q.extent(2);
    q = with_bias(q, 0);
    if (k.rank() == 3) {
      k = with_bias(k, width);
      v = with_bias(v, width + k.extent(2));
    }
  }
  const auto heads_of = [&](T x) { return x.rank() == 4 ? x : split_heads(x, heads); };
  q = heads_of(q);
  k = heads_of(k);
  v = heads_of(v);
  int64_t past = 0;
  if (c.has(6) && c.has(7)) {
    past = c.in(6).extent(2);
    k = concat({c.in(6), k}, 2);
    v = concat({c.in(7), v}, 2);
  }
  c.set(1, k);
  c.set(2, v);
  Mask mask;
  const int64_t queries = q.extent(2), keys = k.extent(2);
  if (c.has(4)) apply_mask(c, mask, c.in(4), q.extent(0), queries, keys);
  if (c.has(5)) mask.add(c.in(5));
  if (c.attr("unidirectional", 0) != 0) {
    mask.allow(apply(Op::ge, {positions_apart(c, queries, keys) + static_cast<double>(past), 0.0}));
  }
  return attend(c, q, k, v, mask, default_scale(q), c.has(4) || c.has(5));
}

// The op GroupQueryAttention of com.microsoft. The inputs of a node are query, key, value, past key, past value,
// seqlens_k, total length, cosine cache and sine cache. If the past key and value are only partly filled, seqlens_k
// hides the rest of them.
T group_query_attention(Call& c) {
  const int64_t heads = c.attr("num_heads", 0), key_heads = c.attr("kv_num_heads", 0);
  T q = c.in(0), k, v;
  if (heads < 1 || key_heads < 1 || heads > kMaxElements || heads % key_heads != 0 || q.rank() != 3) {
    c.fail(heads, " heads, ", key_heads, " key heads and an input of shape ", shape_text(q.shape()), " do not fit");
  }
  if (c.has(1) && c.has(2)) {
    k = c.in(1);
    v = c.in(2);
  } else {
    const int64_t size = q.extent(2) / (heads + 2 * key_heads);
    const T all = q;
    if (size * (heads + 2 * key_heads) != q.extent(2))
      c.fail("a packed input of shape ", shape_text(q.shape()), " does not fit");
    q = part(all, 0, heads * size);
    k = part(all, heads * size, key_heads * size);
    v = part(all, (heads + key_heads) * size, key_heads * size);
  }
  q = split_heads(q, heads);
  k = split_heads(k, key_heads);
  v = split_heads(v, key_heads);
  const int64_t batch = q.extent(0), queries = q.extent(2);
  const int64_t past = c.has(3) && c.in(3).rank() == 4 ? c.in(3).extent(2) : 0;
  // `before` is the number of keys that each batch element has before this call of the node.
  T before = c.constant(static_cast<double>(past), DType::i64, {batch, 1, 1});
  if (c.has(5)) before = reshape(cast(c.in(5), DType::i64), {batch, 1, 1}) + static_cast<double>(1 - queries);
  const T position = reshape(before, {batch, 1}) + c.iota(DType::i64, {1, queries}, 1);
  if (c.attr("do_rotary", 0) != 0) {
    const T at = c.has(9) ? c.in(9) : apply(Op::max, {position, 0.0});
    const T cosine = gather_axis(c.in(7), at, 0), sine = gather_axis(c.in(8), at, 0);
    const bool interleaved = c.attr("rotary_interleaved", 0) != 0;
    q = rotate(q, cosine, sine, 1, interleaved);
    k = rotate(k, cosine, sine, 1, interleaved);
  }
  if (past > 0) {
    // New keys and values follow the past ones. In a cache of fixed length they are written behind its filled part;
    // otherwise they are appended to the past keys and values.
    const double total = c.has(6) && c.literal(6) != nullptr ? c.number(6) : static_cast<double>(past + queries);
    if (total <= static_cast<double>(past)) {
      const auto put = [&](T cache, T fresh) {
        const T offset = c.iota(DType::i64, {1, 1, past, 1}, 2) - reshape(before, {batch, 1, 1, 1});
        const T inside = apply(Op::logical_and,
                               {apply(Op::ge, {offset, 0.0}), apply(Op::lt, {offset, static_cast<double>(queries)})});
        const T index = broadcast_to(select(inside, offset, 0.0), cache.shape());
        return select(inside, take_along(fresh, index, 2), cache);
      };
      k = put(c.in(3), k);
      v = put(c.in(4), v);
    } else {
      k = concat({c.in(3), k}, 2);
      v = concat({c.in(4), v}, 2);
    }
  }
  c.set(1, k);
  c.set(2, v);
  const int64_t keys = k.extent(2);
  Mask mask;
  const T apart = reshape(position, {batch, 1, queries, 1}) - c.iota(DType::i64, {1, 1, 1, keys}, 3);
  mask.allow(apply(Op::ge, {apart, 0.0}));
  if (const int64_t window = c.attr("local_window_size", -1); window > 0) {
    mask.allow(apply(Op::lt, {apart, static_cast<double>(window)}));
  }
  if (c.has(10)) mask.add(c.in(10));
  return attend(c, q, k, v, mask, default_scale(q), true);
}

// Adds up word, segment and position embeddings and normalises the sum. Output 1 has the sum of the mask for each batch
// element, or 0 if there is no mask.
T embed_layer_norm(Call& c) {
  const T ids = c.in(0);
  const int64_t batch = ids.extent(0), length = ids.extent(1);
  T sum = gather_axis(c.in(2), ids, 0);
  const T positions = c.has(8) ? c.in(8) : c.iota(DType::i64, {1, length}, 1);
  sum = sum + gather_axis(c.in(3), positions, 0);
  if (c.has(1) && c.has(4)) sum = sum + gather_axis(c.in(4), c.in(1), 0);
  if (c.wants(1)) {
    c.set(1, c.has(7) ? reduce(Op::reduce_sum, cast(c.in(7), DType::i32), {1}, false)
                      : c.constant(0, DType::i32, {batch}));
  }
  c.set(2, sum);
  const std::vector<int64_t> axes = {2};
  const T centred = sum - stretch(mean(sum, axes, false), axes, sum.shape());
  const T variance = mean(centred * centred, axes, false);
  const T inverse = apply(Op::rsqrt, {variance + c.attr_number("epsilon", 1e-12)});
  return centred * stretch(inverse, axes, sum.shape()) * c.in(5) + c.in(6);
}

}  // namespace wl::onnx_import
