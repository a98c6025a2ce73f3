// Functions that the import rows of all attention ops share. Unless a comment says otherwise, tensors have four axes,
// of which axis 1 is over the heads.
#pragma once

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

T split_heads(T x, int64_t heads);  // turns [batch, length, heads * size] into [batch, heads, length, size]
T join_heads(T x);                  // inverse of split_heads
// attention_scores() returns the scores of queries and keys; attention_values() returns the sums of values, weighted by
// p, the result of softmax. q: [batch, heads, length, size]; p: [batch, heads, length, keys]; k and v: [batch, key
// heads, keys, size]. The number of heads must be a multiple of the number of key heads.
T attention_scores(T q, T k);
T attention_values(T p, T v);

// A bias that is added to attention scores, and the condition under which a score is allowed. The call operator adds
// the bias and sets the scores that are not allowed to -inf.
struct Mask {
  T allowed, bias;
  void allow(T condition);
  void add(T number);
  T operator()(T scores) const;
};

// Returns the softmax over the last axis. If `rows_may_be_empty`, the result is 0 in rows in which all scores are -inf.
T masked_softmax(T scores, bool rows_may_be_empty);
// Returns the position of each query minus that of each key: i64 [queries, keys].
T positions_apart(Call& c, int64_t queries, int64_t keys);

// Returns the rotary embedding of x. Axis `head_axis` of x is over the heads, and the last axis over the `size`
// elements of a head. cosine and sine: [batch or 1, length, at most size / 2].
T rotate(T x, T cosine, T sine, int64_t head_axis, bool interleaved);

}  // namespace wl::onnx_import
