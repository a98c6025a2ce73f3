// Cases of block-wise quantised weights and of four-bit integers.
#include "tests/unit/import/case_values.h"

namespace wl::testing {
namespace {

// Returns `count` integers in [low, high]. Each is 7 larger than the one before, wrapped around to the range.
Reals counted(int64_t count, int64_t low, int64_t high) {
  Reals values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(low + i * 7 % (high - low + 1)));
  return values;
}

CaseInput known(int type, Ints shape, int64_t low, int64_t high) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return {.type = type, .shape = std::move(shape), .values = counted(count, low, high)};
}

}  // namespace

std::vector<Case> block_cases() {
  const CaseInput bytes = known(TensorProto::UINT8, {5, 3, 8}, 0, 255);
  const std::vector<CaseAttribute> product = {{"K", 48}, {"N", 5}, {"bits", 4}, {"block_size", 16}};
  return {
      // Two elements share a byte. The first case has an even number of elements in a row, the next ones an odd number.
      {"DequantizeLinear", 21, {known(kInt4, {3, 4}, -8, 7), number(0.25)}, {}, "f32[3,4]"},
      {"DequantizeLinear",
       21,
       {known(kUint4, {3, 5}, 0, 15), f({3, 5}, 1, 0.1), known(kUint4, {3, 5}, 0, 15)},
       {{"axis", 0}, {"block_size", 1}},
       "f32[3,5]"},
      {"DequantizeLinear", 21, {known(kInt4, {3, 5}, -8, 7), f({5})}, {{"axis", 1}}, "f32[3,5]"},
      {"DequantizeLinear", 21, {known(kInt4, {6, 5}, -8, 7), f({2, 5})}, {{"axis", 0}, {"block_size", 3}}, "f32[6,5]"},
      {"Cast", 21, {known(kUint4, {7}, 0, 15)}, {{"to", TensorProto::FLOAT}}, "f32[7]"},
      {"MatMulNBits", 1, {f({4, 48}), bytes, f({5, 3})}, product, "f32[4,5]", 1, kMicrosoft},
      {"MatMulNBits",
       1,
       {f({2, 4, 48}), bytes, f({5, 3}), known(TensorProto::UINT8, {5, 2}, 0, 255), kNone, f({5})},
       product,
       "f32[2,4,5]",
       1,
       kMicrosoft},
      // K is no multiple of the block size, so the last block is partial.
      {"MatMulNBits",
       1,
       {f({40}), bytes, f({15})},
       {{"K", 40}, {"N", 5}, {"bits", 4}, {"block_size", 16}},
       "f32[5]",
       1,
       kMicrosoft,
       false},
      {"MatMulNBits",
       1,
       {f({4, 48}), known(TensorProto::UINT8, {5, 3, 16}, 0, 255), f({5, 3}),
        known(TensorProto::UINT8, {5, 3}, 100, 140)},
       {{"K", 48}, {"N", 5}, {"bits", 8}, {"block_size", 16}},
       "f32[4,5]",
       1,
       kMicrosoft},
  };
}

}  // namespace wl::testing
