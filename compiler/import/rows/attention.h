// Parts shared by all kinds of attention. Tensors have four axes; heads are axis 1.
#pragma once

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

T split_heads(T x, int64_t heads);  // [batch, length, heads * size] -> [batch, heads, length, size]
T join_heads(T x);                  // inverse of split_heads
// q: [batch, heads, length, size]; p (the result of softmax): [batch, heads, length, keys]; k and v: [batch, key heads,
// keys, size]. The number of heads must be a multiple of the number of key heads.
T attention_scores(T q, T k);
T attention_values(T p, T v);

// A bias that is added to attention scores, and the condition under which a score counts at all. The call operator
// applies both; a score that does not count becomes -inf.
struct Mask {
  T allowed, bias;
  void allow(T condition);
  void add(T number);
  T operator()(T scores) const;
};

// Returns the softmax over the last axis. If `rows_may_be_empty`, a row in which all scores are -inf gives zeros.
T masked_softmax(T scores, bool rows_may_be_empty);
T positions_apart(Call& c, int64_t queries, int64_t keys);  // i64 [queries, keys]: position of the query minus position
                                                            // of the key

// Returns the rotary embedding of x, which has heads on axis `head_axis` and the elements of a head (size) on the last
// axis. cosine and sine: [batch or 1, length, at most size / 2].
T rotate(T x, T cosine, T sine, int64_t head_axis, bool interleaved);

}  // namespace wl::onnx_import
