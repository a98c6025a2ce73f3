// Parts shared by all kinds of attention. Tensors have four axes; heads are axis 1.
#pragma once

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

T split_heads(T x, int64_t heads);  // [batch, length, heads * size] -> [batch, heads, length, size]
T join_heads(T x);                  // inverse of split_heads
// q: [batch, heads, length, size]; k and v: [batch, key heads, keys, size]. The number of key heads divides that of
// heads.
T attention_scores(T q, T k);
T attention_values(T p, T v);

// A bias that is added to scores, and a mask of the scores that count at all.
struct Mask {
  T allowed, bias;
  void allow(T condition);
  void add(T number);
  T operator()(T scores) const;
};

// Softmax over the last axis. If `rows_may_be_empty`, a row of -inf only gives zeros.
T masked_softmax(T scores, bool rows_may_be_empty);
T positions_apart(Call& c, int64_t queries, int64_t keys);  // i64 [queries, keys]: position of the query minus position
                                                            // of the key

// Rotary embedding of x, with heads on axis `head_axis` and size on the last; cosine and sine: [batch or 1, length, at
// most size / 2].
T rotate(T x, T cosine, T sine, int64_t head_axis, bool interleaved);

}  // namespace wl::onnx_import
