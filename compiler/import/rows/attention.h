// The parts that every kind of attention is made of; heads are axis 1 of four.
#pragma once

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

T split_heads(T x, int64_t heads);  // [batch, length, heads * size] -> [batch, heads, length, size]
T join_heads(T x);                  // back
// q: [batch, heads, length, size], k and v: [batch, key heads, keys, size]; key heads divide heads.
T attention_scores(T q, T k);
T attention_values(T p, T v);

// What is added to scores, and where they count at all.
struct Mask {
  T allowed, bias;
  void allow(T condition);
  void add(T number);
  T operator()(T scores) const;
};

// Over the last axis; a row of nothing but -inf becomes zeros if it may occur.
T masked_softmax(T scores, bool rows_may_be_empty);
T positions_apart(Call& c, int64_t queries, int64_t keys);  // i64 [queries, keys]: query - key

// x: heads on axis `head_axis`, size on the last; cosine and sine: [batch or 1, length, size / 2 or less].
T rotate(T x, T cosine, T sine, int64_t head_axis, bool interleaved);

}  // namespace wl::onnx_import
