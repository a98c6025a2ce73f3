// Matrix products with weights that are quantised in blocks along the reduced axis, as those of language models often
// are.
#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// Unpacks `packed`, whose bytes hold integers of `bits` (four or eight) bits each, and returns the first `count`
// integers along the last axis.
T integers(T packed, int64_t bits, int64_t count) {
  const T all = bits == 4 ? packed.call().unpacked(packed, DType::u8) : packed;
  const int64_t axis = all.rank() - 1;
  if (all.extent(axis) < count) {
    packed.call().fail("a tensor of shape ", shape_text(packed.shape()), " has too few bytes for ", count,
                       " integers of ", bits, " bits a row");
  }
  return slice_axis(all, axis, 0, 1, count);
}

// Returns the zero points of the weights in shape [n, blocks]: one for each block of each of the n weight columns.
// Input 3 of the node has them packed into bytes like the weights, or unpacked in the dtype of the scales.
T zero_points(Call& c, int64_t n, int64_t blocks, int64_t bits) {
  const T given = c.in(3);
  if (given.dtype() != DType::u8) return reshape(given, {n, blocks});
  const int64_t bytes = (blocks * bits + 7) / 8;
  return integers(reshape(given, {n, bytes}), bits, blocks);
}

}  // namespace

// The op MatMulNBits of com.microsoft. The inputs of a node are: the left factor [.., K]; packed weights [N, blocks,
// block * bits / 8]; scales; zero points, by default half of the range of the packed integers; g_idx; bias [N].
T mat_mul_n_bits(Call& c) {
  const int64_t depth = c.attr("K", 0), n = c.attr("N", 0), bits = c.attr("bits", 4), block = c.attr("block_size", 0);
  if (bits != 4 && bits != 8) c.missing("attribute bits is ", bits, "; 4 and 8 are supported");
  if (c.has(4)) c.missing("input 4, g_idx, is not supported: export the weights in the order of their groups");
  if (depth < 1 || n < 1 || block < 2 || depth > kMaxElements || n > kMaxElements || block > kMaxElements) {
    c.fail("K, N and block_size are ", depth, ", ", n, " and ", block, "; K and N must be at least 1, block_size 2");
  }
  const T x = c.in(0), scales = c.in(2);
  if (x.rank() < 1 || x.extent(x.rank() - 1) != depth) {
    c.fail("input 0 has shape ", shape_text(x.shape()), ", its last extent must be K = ", depth);
  }
  const int64_t blocks = (depth + block - 1) / block;
  const T bytes = reshape(c.in(1), {n, blocks, block * bits / 8});
  if (bytes.dtype() != DType::u8) c.fail("input 1 must be of UINT8, it is ", name_of(bytes.dtype()));
  T weights = cast(integers(bytes, bits, block), scales.dtype());
  const Shape each = {n, blocks, 1};
  weights = c.has(3) ? weights - cast(reshape(zero_points(c, n, blocks, bits), each), scales.dtype())
                     : weights - static_cast<double>(int64_t{1} << (bits - 1));
  weights = reshape(weights * reshape(scales, each), {n, blocks * block});
  weights = cast(slice_axis(weights, 1, 0, 1, depth), x.dtype());
  const T y = matmul(x, transpose(weights, {1, 0}));
  return c.has(5) ? y + c.in(5) : y;
}

}  // namespace wl::onnx_import
