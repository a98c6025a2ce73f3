// Rotary embeddings, and layers of linear attention models, which pass on a state from each step to the next.
#include <cmath>

#include "compiler/import/rows/attention.h"
#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

T silu(T x) {
  return x * apply(Op::sigmoid, {x});
}

}  // namespace

T rotate(T x, T cosine, T sine, int64_t head_axis, bool interleaved) {
  Call& c = x.call();
  const int64_t last = x.rank() - 1, half = cosine.extent(cosine.rank() - 1), size = x.extent(last);
  if (sine.shape() != cosine.shape() || 2 * half > size) {
    c.fail("caches of shapes ", shape_text(cosine.shape()), " and ", shape_text(sine.shape()),
           " do not fit heads of size ", size);
  }
  cosine = unsqueeze(cosine, {head_axis});
  sine = unsqueeze(sine, {head_axis});
  const T turned = slice_axis(x, last, 0, 1, 2 * half);
  const T a = interleaved ? slice_axis(turned, last, 0, 2, half) : slice_axis(turned, last, 0, 1, half);
  const T b = interleaved ? slice_axis(turned, last, 1, 2, half) : slice_axis(turned, last, half, 1, half);
  const T real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  T y;
  if (interleaved) {
    y = reshape(concat({unsqueeze(real, {last + 1}), unsqueeze(imaginary, {last + 1})}, last + 1), turned.shape());
  } else {
    y = concat({real, imaginary}, last);
  }
  return 2 * half == size ? y : concat({y, slice_axis(x, last, 2 * half, 1, size - 2 * half)}, last);
}

namespace {

// Fails unless the cosine and sine caches have one column for each pair of elements that are rotated. All elements of a
// head are rotated or, if the node has attribute rotary_embedding_dim, only that many.
void check_columns(Call& c, T cosine, int64_t size) {
  const int64_t part = c.attr("rotary_embedding_dim", 0), turned = part > 0 ? part : size;
  const int64_t columns = cosine.rank() > 0 ? cosine.extent(cosine.rank() - 1) : 0;
  if (turned != 2 * columns || turned > size) {
    c.fail("caches of shape ", shape_text(cosine.shape()), " do not fit heads of size ", size, " of which ", turned,
           " elements are turned; there must be a column for every two of them");
  }
}

T rotary(Call& c, T x, T cosine, T sine, int64_t heads) {
  const bool interleaved = c.attr("interleaved", 0) != 0;
  if (x.rank() == 4) {  // x has the shape [batch, heads, length, size]
    check_columns(c, cosine, x.extent(3));
    return rotate(x, cosine, sine, 1, interleaved);
  }
  if (x.rank() != 3 || heads < 1 || x.extent(2) % heads != 0) {
    c.fail("an input of shape ", shape_text(x.shape()), " does not split into ", heads, " heads");
  }
  const Shape shape = x.shape();
  check_columns(c, cosine, shape[2] / heads);
  return reshape(rotate(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), cosine, sine, 2, interleaved),
                 shape);
}

}  // namespace

T rotary_embedding(Call& c) {
  T cosine = c.in(1), sine = c.in(2);
  if (c.has(3)) {
    cosine = gather_axis(cosine, c.in(3), 0);
    sine = gather_axis(sine, c.in(3), 0);
  }
  return rotary(c, c.in(0), cosine, sine, c.attr("num_heads", 0));
}

// The op RotaryEmbedding of com.microsoft. Input 1 has the positions; if it is one number, this is the position of the
// first element of each sequence.
T rotary_embedding_ms(Call& c) {
  const T x = c.in(0);
  if (c.attr("is_packed_batching", 0) != 0) c.missing("attribute is_packed_batching is not supported");
  T cosine = c.in(2), sine = c.in(3), position = c.in(1);
  const int64_t length = x.rank() == 4 ? x.extent(2) : x.rank() == 3 ? x.extent(1) : 0;
  if (position.rank() == 1 && position.extent(0) == 1) {
    position = unsqueeze(c.iota(DType::i64, {length}, 0) + position, {0});
  }
  int64_t heads = c.attr("num_heads", 0);
  if (heads == 0 && x.rank() == 3 && cosine.rank() == 2 && cosine.extent(1) > 0)
    heads = x.extent(2) / (2 * cosine.extent(1));
  return rotary(c, x, gather_axis(cosine, position, 0), gather_axis(sine, position, 0), heads);
}

T linear_attention(Call& c) {
  const int64_t heads = c.attr("q_num_heads", 0), key_heads = c.attr("kv_num_heads", 0);
  const std::string rule = c.attr_text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.fail("update_rule '", rule, "' is unknown");
  if (key_heads < 1 || heads < 1 || heads > kMaxElements || heads % key_heads != 0)
    c.fail(heads, " heads do not share ", key_heads);
  const DType dtype = c.dtype(0);
  const DType wide = dtype == DType::f64 ? dtype : DType::f32;
  const T q = split_heads(cast(c.in(0), wide), heads), k = split_heads(cast(c.in(1), wide), key_heads);
  const T v = split_heads(cast(c.in(2), wide), key_heads);
  const int64_t batch = q.extent(0), steps = q.extent(2), size = k.extent(3), value_size = v.extent(3);
  if (q.extent(3) != size) c.fail("queries and keys have heads of size ", q.extent(3), " and ", size);
  if (steps > kMaxSteps) c.missing(steps, " steps; up to ", kMaxSteps, " are unrolled");
  T decay, beta, state;
  if (gated) {
    decay = cast(c.in(4), wide);
    decay = apply(Op::exp, {split_heads(decay, key_heads)});
  }
  if (delta) {
    beta = cast(c.in(5), wide);
    beta = split_heads(beta, beta.rank() == 3 ? beta.extent(2) : 1);
  }
  state = c.has(3) ? cast(c.in(3), wide) : c.constant(0, wide, {batch, key_heads, size, value_size});
  const double given = c.attr_number("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(size)) : given;
  std::vector<T> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    const auto at = [&](T x) {
      const Shape s = x.shape();
      return reshape(slice_axis(x, 2, t, 1, 1), {s[0], s[1], s[3]});
    };
    const T key = at(k);
    T value = at(v);
    if (gated) state = state * unsqueeze(at(decay), {3});
    if (delta) value = at(beta) * (value - contract(state, key, "bhdm,bhd->bhm"));
    state = state + unsqueeze(key, {3}) * unsqueeze(value, {2});
    const T query = reshape(at(q), {batch, key_heads, heads / key_heads, size});
    const T read = contract(query, state, "bgrd,bgdm->bgrm") * scale;
    outputs.push_back(reshape(read, {batch, 1, heads * value_size}));
  }
  c.set(1, cast(state, c.has(3) ? c.dtype(3) : dtype));
  if (outputs.empty()) return c.constant(0, dtype, {batch, 0, heads * value_size});
  return cast(concat(outputs, 1), dtype);
}

T causal_conv(Call& c) {
  const T x = c.in(0), w = c.in(1);
  if (x.rank() != 3 || w.rank() != 3 || w.extent(0) != x.extent(1) || w.extent(1) != 1 || w.extent(2) < 1) {
    c.fail("input ", shape_text(x.shape()), " and weights ", shape_text(w.shape()),
           " must be [batch, channels, length] and [channels, 1, taps]");
  }
  const int64_t taps = w.extent(2);
  const T padded = c.has(3) ? concat({c.in(3), x}, 2) : pad(x, {0, 0, taps - 1}, {0, 0, 0}, 0);
  T y = contract(window(padded, {2}, {taps, 1, 1}), reshape(w, {w.extent(0), taps}), "bclt,ct->bcl");
  if (c.has(2)) y = y + along(c.in(2), 1, 3);
  const std::string activation = c.attr_text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = silu(y);
  } else if (activation != "none") {
    c.fail("activation '", activation, "', expected none, silu or swish");
  }
  c.set(1, slice_axis(padded, 2, padded.extent(2) - (taps - 1), 1, taps - 1));
  return y;
}

}  // namespace wl::onnx_import
