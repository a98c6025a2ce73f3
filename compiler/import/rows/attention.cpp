// The op Attention of the ONNX standard. In its contractions, the query heads that use the same key head are an axis of
// their own, so that keys and values are never repeated.
#include "compiler/import/rows/attention.h"

#include <cmath>
#include <limits>

namespace wl::onnx_import {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

T split_heads(T x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.extent(2) % heads != 0) {
    x.call().fail("a tensor of shape ", shape_text(x.shape()), " does not split into ", heads, " heads");
  }
  return transpose(reshape(x, {x.extent(0), x.extent(1), heads, x.extent(2) / heads}), {0, 2, 1, 3});
}

T join_heads(T x) {
  const Shape s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

T attention_scores(T q, T k) {
  Call& c = q.call();
  const Shape a = q.shape(), b = k.shape();
  if (a.size() != 4 || b.size() != 4 || a[0] != b[0] || a[3] != b[3] || b[1] < 1 || a[1] % b[1] != 0) {
    c.fail("queries ", shape_text(a), " and keys ", shape_text(b), " do not fit");
  }
  if (a[1] == b[1]) return contract(q, k, "bhsd,bhtd->bhst");
  const T grouped = reshape(q, {a[0], b[1], a[1] / b[1], a[2], a[3]});
  return reshape(contract(grouped, k, "bgrsd,bgtd->bgrst"), {a[0], a[1], a[2], b[2]});
}

T attention_values(T p, T v) {
  const Shape a = p.shape(), b = v.shape();
  if (a.size() != 4 || b.size() != 4 || a[0] != b[0] || a[3] != b[2] || b[1] < 1 || a[1] % b[1] != 0) {
    p.call().fail("attention of shape ", shape_text(a), " and values ", shape_text(b), " do not fit");
  }
  if (a[1] == b[1]) return contract(p, v, "bhst,bhtd->bhsd");
  const T grouped = reshape(p, {a[0], b[1], a[1] / b[1], a[2], a[3]});
  return reshape(contract(grouped, v, "bgrst,bgtd->bgrsd"), {a[0], a[1], a[2], b[3]});
}

void Mask::allow(T condition) {
  allowed = allowed.valid() ? apply(Op::logical_and, {allowed, condition}) : condition;
}

void Mask::add(T number) {
  bias = bias.valid() ? bias + number : number;
}

T Mask::operator()(T scores) const {
  if (bias.valid()) scores = scores + cast(bias, scores.dtype());
  return allowed.valid() ? select(allowed, scores, -kInfinity) : scores;
}

T masked_softmax(T scores, bool rows_may_be_empty) {
  const std::vector<int64_t> axes = {scores.rank() - 1};
  T most = reduce(Op::reduce_max, scores, axes, false), empty;
  if (rows_may_be_empty) {
    empty = apply(Op::eq, {most, -kInfinity});
    most = select(empty, 0.0, most);
  }
  const T exps = apply(Op::exp, {scores - stretch(most, axes, scores.shape())});
  T sum = reduce(Op::reduce_sum, exps, axes, false);
  if (rows_may_be_empty) sum = select(empty, 1.0, sum);
  return exps / stretch(sum, axes, scores.shape());
}

T positions_apart(Call& c, int64_t queries, int64_t keys) {
  return c.iota(DType::i64, {queries, keys}, 0) - c.iota(DType::i64, {queries, keys}, 1);
}

T attention(Call& c) {
  T q = c.in(0), k = c.in(1), v = c.in(2);
  const bool flat = q.rank() == 3;
  if (flat) {
    q = split_heads(q, c.attr("q_num_heads", 0));
    k = split_heads(k, c.attr("kv_num_heads", 0));
    v = split_heads(v, c.attr("kv_num_heads", 0));
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) c.fail("queries, keys and values must have rank 3 or 4");
  int64_t past = 0;
  if (c.has(4) != c.has(5)) c.fail("past_key and past_value come together");
  if (c.has(4)) {
    past = c.in(4).rank() == 4 ? c.in(4).extent(2) : 0;
    k = concat({c.in(4), k}, 2);
    v = concat({c.in(5), v}, 2);
  }
  c.set(1, k);
  c.set(2, v);
  const int64_t queries = q.extent(2), keys = k.extent(2), batch = q.extent(0);
  const double scale = c.attr_number("scale", 1 / std::sqrt(static_cast<double>(q.extent(3))));
  T scores = attention_scores(q * scale, k);
  const int64_t mode = c.attr("qk_matmul_output_mode", 0);
  if (mode == 0) c.set(3, scores);
  if (const double cap = c.attr_number("softcap", 0); cap > 0) scores = apply(Op::tanh, {scores / cap}) * cap;
  if (mode == 1) c.set(3, scores);

  Mask mask;
  if (c.has(3)) {
    T given = c.in(3);
    if (given.rank() >= 1 && given.extent(given.rank() - 1) < keys) {
      std::vector<int64_t> low(given.shape().size(), 0), high = low;
      high.back() = keys - given.extent(given.rank() - 1);
      given = pad(given, low, high, given.dtype() == DType::b1 ? 0 : -kInfinity);
    }
    given.dtype() == DType::b1 ? mask.allow(given) : mask.add(given);
  }
  T apart = positions_apart(c, queries, keys);
  if (c.has(6)) {
    const T filled = reshape(cast(c.in(6), DType::i64), {batch, 1, 1, 1});
    mask.allow(apply(Op::lt, {c.iota(DType::i64, {keys}, 0), filled}));
    if (!c.has(4)) apart = apart + (filled - static_cast<double>(queries));
  }
  if (past > 0) apart = apart + static_cast<double>(past);
  if (c.attr("is_causal", 0) != 0) mask.allow(apply(Op::ge, {apart, 0.0}));
  const int64_t left = c.attr("left_window_size", -1), right = c.attr("right_window_size", -1);
  if (left >= 0) mask.allow(apply(Op::le, {apart, static_cast<double>(left)}));
  if (right >= 0) mask.allow(apply(Op::ge, {apart, -static_cast<double>(right)}));
  scores = mask(scores);
  if (mode == 2) c.set(3, scores);

  const DType precision = c.dtype_attr("softmax_precision", scores.dtype());
  const bool causal_only = !c.has(3) && !c.has(6) && left < 0 && right < 0;
  const T weights = cast(masked_softmax(cast(scores, precision), !causal_only), q.dtype());
  if (mode == 3) c.set(3, weights);
  const T y = attention_values(weights, v);
  return flat ? join_heads(y) : y;
}

}  // namespace wl::onnx_import
