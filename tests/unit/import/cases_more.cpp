// Cases of attention, recurrence, signals, sampling, scatters and quantised arithmetic, and of onnxruntime's fused ops.
#include "tests/unit/import/case_values.h"

namespace wl::testing {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

CaseInput i8(Ints shape) {
  return ints(std::move(shape), -20, 20, TensorProto::INT8);
}
CaseInput u8(Ints shape) {
  return ints(std::move(shape), 0, 40, TensorProto::UINT8);
}
CaseInput i32(Ints shape, int64_t low, int64_t high) {
  return ints(std::move(shape), low, high, TensorProto::INT32);
}
CaseInput zero8(int type = TensorProto::UINT8) {
  return number(3, type);
}

}  // namespace

std::vector<Case> attention_cases() {
  return {
      {"Attention", 23, {f({2, 4, 3, 8}), f({2, 2, 5, 8}), f({2, 2, 5, 6})}, {}, "f32[2,4,3,6]", 1, "", false},
      {"Attention",
       23,
       {f({2, 3, 32}), f({2, 5, 32}), f({2, 5, 24}), bools({3, 5})},
       {{"q_num_heads", 4}, {"kv_num_heads", 4}, {"is_causal", 1}, {"softcap", 2.0}},
       "f32[2,3,24]",
       1,
       "",
       false},
      {"LinearAttention",
       27,
       {f({1, 3, 8}), f({1, 3, 8}), f({1, 3, 4}), kNone, f({1, 3, 2}), f({1, 3, 2})},
       {{"q_num_heads", 2}, {"kv_num_heads", 2}},
       "f32[1,3,4]",
       2,
       "",
       false},
      {"CausalConvWithState",
       27,
       {f({2, 3, 6}), f({3, 1, 4}), f({3})},
       {{"activation", "silu"}},
       "f32[2,3,6]",
       2,
       "",
       false},
      {"RotaryEmbedding", 23, {f({2, 4, 3, 8}), f({2, 3, 4}), f({2, 3, 4})}, {}, "f32[2,4,3,8]", 1, "", false},
      {"RNN", 14, {f({5, 2, 3}), f({1, 4, 3}), f({1, 4, 4}), f({1, 8})}, {{"hidden_size", 4}}, "f32[5,1,2,4]", 2},
      {"GRU",
       14,
       {f({5, 2, 3}), f({2, 12, 3}), f({2, 12, 4}), f({2, 24}), i32({2}, 1, 6), f({2, 2, 4})},
       {{"hidden_size", 4}, {"direction", "bidirectional"}, {"linear_before_reset", 1}},
       "f32[5,2,2,4]",
       2},
      {"LSTM",
       14,
       {f({5, 2, 3}), f({1, 16, 3}), f({1, 16, 4}), f({1, 32}), kNone, f({1, 2, 4}), f({1, 2, 4}), f({1, 12})},
       {{"hidden_size", 4}, {"direction", "reverse"}, {"clip", 2.0}},
       "f32[5,1,2,4]",
       3},
  };
}

std::vector<Case> signal_cases() {
  return {
      {"DFT", 17, {f({2, 9, 1})}, {{"axis", 1}}, "f32[2,9,2]", 1, "", false},
      {"DFT", 20, {f({2, 8, 2}), number(10, TensorProto::INT64)}, {{"inverse", 1}}, "f32[2,10,2]", 1, "", false},
      {"STFT", 17, {f({1, 32, 1}), number(4, TensorProto::INT64), f({8})}, {}, "f32[1,7,5,2]", 1, "", false},
      {"HannWindow", 17, {number(10, TensorProto::INT64)}, {}, "f32[10]"},
      {"HammingWindow", 17, {number(10, TensorProto::INT64)}, {{"periodic", 0}}, "f32[10]", 1, "", false},
      {"BlackmanWindow", 17, {number(10, TensorProto::INT64)}, {}, "f32[10]", 1, "", false},
      {"MelWeightMatrix",
       17,
       {number(8, TensorProto::INT64), number(16, TensorProto::INT64), number(8192, TensorProto::INT64), number(0),
        number(4096)},
       {},
       "f32[9,8]"},
      {"CumSum", 14, {f({3, 200}), number(1, TensorProto::INT64)}, {{"exclusive", 1}}, "f32[3,200]"},
      {"CumSum", 14, {f({5, 4}), number(0, TensorProto::INT64)}, {{"reverse", 1}}, "f32[5,4]"},
      {"CumProd", 26, {f({3, 7}, 1, 0.1), number(1, TensorProto::INT64)}, {}, "f32[3,7]", 1, "", false},
      {"TfIdfVectorizer",
       9,
       {i32({2, 6}, 2, 7)},
       {{"mode", "TF"},
        {"min_gram_length", 2},
        {"max_gram_length", 2},
        {"max_skip_count", 1},
        {"ngram_counts", Ints{0, 4}},
        {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}},
        {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}},
       "f32[2,7]"},
      {"Det", 11, {f({2, 5, 5})}, {}, "f32[2]"},
      {"Col2Im", 18, {f({1, 8, 9}), list({4, 4}), list({2, 2})}, {}, "f32[1,2,4,4]"},
      {"Col2Im",
       18,
       {f({1, 4, 9}), list({5, 5}), list({2, 2})},
       {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}},
       "f32[1,1,5,5]"},
      {"CenterCropPad", 18, {f({5, 6}), list({8, 3})}, {}, "f32[8,3]"},
  };
}

std::vector<Case> sampling_cases() {
  std::vector<Case> cases;
  // onnxruntime computes coordinates in f32, so cases are compared only where coordinates are exact.
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    cases.push_back({"Resize",
                     13,
                     {f({1, 2, 4, 6}), kNone, floats({4}, {1, 1, 2, 0.5})},
                     {{"mode", mode}, {"coordinate_transformation_mode", "half_pixel"}},
                     "f32[1,2,8,3]"});
    cases.push_back(
        {"Resize", 19, {f({1, 2, 8, 6}), kNone, kNone, list({1, 2, 4, 12})}, {{"mode", mode}}, "f32[1,2,4,12]"});
  }
  const std::vector<Case> more = {
      {"Resize", 10, {f({1, 2, 3, 4}), floats({4}, {1, 1, 2, 2})}, {{"mode", "nearest"}}, "f32[1,2,6,8]"},
      {"Upsample", 9, {f({1, 2, 3, 4}), floats({4}, {1, 1, 2, 3})}, {{"mode", "nearest"}}, "f32[1,2,6,12]"},
      {"GridSample", 16, {f({1, 2, 5, 6}), f({1, 3, 4, 2}, 0, 0.4)}, {}, "f32[1,2,3,4]"},
      {"GridSample",
       16,
       {f({1, 2, 5, 6}), f({1, 3, 4, 2}, 0, 0.6)},
       {{"mode", "bicubic"}, {"padding_mode", "reflection"}},
       "f32[1,2,3,4]"},
      {"AffineGrid", 20, {f({2, 2, 3}), list({2, 3, 4, 5})}, {}, "f32[2,4,5,2]"},
      {"RoiAlign",
       16,
       {f({2, 3, 10, 10}), floats({2, 4}, {0, 1, 7, 8, 2, 2, 5, 9}), list({0, 1})},
       {{"output_height", 3}, {"output_width", 2}, {"sampling_ratio", 2}},
       "f32[2,3,3,2]"},
      {"RoiAlign",
       10,
       {f({2, 3, 10, 10}), floats({2, 4}, {0, 1, 7, 8, 2, 2, 5, 9}), list({0, 1})},
       {{"output_height", 3}, {"output_width", 2}},
       "f32[2,3,3,2]"},
      {"DeformConv",
       19,
       {f({1, 2, 5, 5}), f({3, 2, 2, 2}), f({1, 8, 4, 4}, 0, 0.3)},
       {{"kernel_shape", Ints{2, 2}}},
       "f32[1,3,4,4]",
       1,
       "",
       false},
      {"MaxPool", 12, {f({1, 2, 9, 8})}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}, "f32[1,2,4,3]", 2},
  };
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<Case> scatter_cases() {
  return {
      {"Scatter", 9, {f({5, 4}), ints({2, 4}, -5, 5), f({2, 4})}, {}, "f32[5,4]", 1, "", false},
      {"ScatterElements", 16, {f({5, 4}), ints({2, 4}, -5, 5), f({2, 4})}, {{"reduction", "add"}}, "f32[5,4]"},
      {"ScatterElements", 18, {f({5, 4}), ints({2, 3}, -5, 5), f({2, 3})}, {{"reduction", "max"}}, "f32[5,4]"},
      {"ScatterND", 16, {f({5, 4}), ints({3, 1}, -5, 5), f({3, 4})}, {{"reduction", "add"}}, "f32[5,4]"},
      {"ScatterND",
       16,
       {f({5, 4}), {.type = TensorProto::INT64, .shape = {3, 1}, .values = {4, -4, 2}}, f({3, 4})},
       {},
       "f32[5,4]"},
      {"TensorScatter", 24, {f({2, 6, 3}), f({2, 2, 3}), list({1, 3})}, {}, "f32[2,6,3]", 1, "", false},
      {"MaxUnpool",
       11,
       {f({1, 1, 2, 2}), {.type = TensorProto::INT64, .shape = {1, 1, 2, 2}, .values = {5, 7, 13, 15}}},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}},
       "f32[1,1,4,4]"},
      {"TopK", 11, {f({3, 7}), list({4})}, {}, "f32[3,4]", 2},
      {"TopK", 11, {f({3, 90}), list({2})}, {{"largest", 0}}, "f32[3,2]", 2},
      {"ReverseSequence", 10, {f({5, 3}), ints({3}, 1, 6)}, {}, "f32[5,3]"},
      {"NonZero", 13, {floats({2, 2}, {1, 0, 2, 3})}, {}, "i64[2,3]"},
      {"Unique", 11, {floats({5}, {2, 1, 1, 3, 2})}, {}, "f32[3]", 4},
      {"Compress",
       11,
       {f({4, 3}), {.type = TensorProto::BOOL, .shape = {4}, .values = {0, 1, 0, 1}}},
       {{"axis", 0}},
       "f32[2,3]"},
      {"NonMaxSuppression",
       11,
       {floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}), floats({1, 1, 3}, {0.9, 0.75, 0.6}), list({3}),
        floats({1}, {0.5}), floats({1}, {0})},
       {},
       "i64[2,3]"},
      {"NegativeLogLikelihoodLoss", 13, {f({3, 5}), ints({3}, 0, 5), f({5}, 2, 0.3)}, {}, "f32[]"},
      {"SoftmaxCrossEntropyLoss", 13, {f({3, 5, 2}), ints({3, 2}, 0, 5)}, {{"ignore_index", 2}}, "f32[]"},
      {"BitShift", 11, {u8({4}), ints({4}, 0, 9, TensorProto::UINT8)}, {{"direction", "LEFT"}}, "u8[4]"},
      {"BitwiseAnd", 18, {ints({5}, -40, 40), ints({5}, -40, 40)}, {}, "i64[5]"},
      {"BitwiseOr", 18, {ints({5}, -40, 40), ints({5}, -40, 40)}, {}, "i64[5]"},
      {"BitwiseXor", 18, {ints({5}, -40, 40), ints({5}, -40, 40)}, {}, "i64[5]"},
      {"BitwiseNot", 18, {ints({5}, -40, 40)}, {}, "i64[5]"},
      {"BitCast", 26, {floats({2}, {1, -2})}, {{"to", TensorProto::INT32}}, "i32[2]", 1, "", false},
      {"Acos", 7, {f({7}, 0, 0.2)}, {}, "f32[7]"},
      {"Asin", 7, {f({7}, 0, 0.2)}, {}, "f32[7]"},
      {"Atan", 7, {f({33}, 0, 2)}, {}, "f32[33]"},
  };
}

std::vector<Case> quantised_cases() {
  const CaseInput s = number(0.25);
  return {
      {"DynamicQuantizeLinear", 11, {f({4, 5})}, {}, "u8[4,5]", 3},
      {"QLinearMatMul", 10, {u8({3, 4}), s, zero8(), u8({4, 5}), s, zero8(), number(8), zero8()}, {}, "u8[3,5]"},
      {"ConvInteger", 10, {u8({1, 2, 5, 5}), u8({3, 2, 3, 3}), zero8(), zero8()}, {}, "i32[1,3,3,3]"},
      {"QLinearConv",
       10,
       {u8({1, 2, 5, 5}), s, zero8(), u8({3, 2, 3, 3}), s, zero8(), number(16), zero8(), i32({3}, -9, 9)},
       {},
       "u8[1,3,3,3]"},
      {"QLinearAdd",
       1,
       {u8({3, 4}), s, zero8(), u8({4}), s, zero8(), number(0.5), zero8()},
       {},
       "u8[3,4]",
       1,
       kMicrosoft},
      {"QLinearMul",
       1,
       {i8({3, 4}), s, zero8(TensorProto::INT8), i8({4}), s, zero8(TensorProto::INT8), number(2),
        zero8(TensorProto::INT8)},
       {},
       "i8[3,4]",
       1,
       kMicrosoft},
      {"QLinearConcat",
       1,
       {number(0.5), zero8(), u8({2, 3}), s, zero8(), u8({1, 3}), s, zero8()},
       {{"axis", 0}},
       "u8[3,3]",
       1,
       kMicrosoft,
       false},
      {"QLinearSigmoid",
       1,
       {u8({3, 4}), s, zero8(), number(0.004), number(0, TensorProto::UINT8)},
       {},
       "u8[3,4]",
       1,
       kMicrosoft,
       false},
      {"QLinearLeakyRelu", 1, {u8({3, 4}), s, zero8(), s, zero8()}, {{"alpha", 0.1}}, "u8[3,4]", 1, kMicrosoft, false},
      {"MatMulIntegerToFloat",
       1,
       {u8({3, 4}), u8({4, 5}), s, s, zero8(), zero8(), f({5})},
       {},
       "f32[3,5]",
       1,
       kMicrosoft},
      {"DynamicQuantizeMatMul", 1, {f({3, 4}), u8({4, 5}), s, zero8()}, {}, "f32[3,5]", 1, kMicrosoft},
  };
}

std::vector<Case> fused_cases() {
  return {
      {"Attention",
       1,
       {f({2, 4, 8}), f({8, 24}), f({24}), i32({2}, 1, 5)},
       {{"num_heads", 2}},
       "f32[2,4,8]",
       1,
       kMicrosoft},
      {"Attention",
       1,
       {f({2, 4, 8}), f({8, 24}), f({24})},
       {{"num_heads", 2}, {"unidirectional", 1}},
       "f32[2,4,8]",
       1,
       kMicrosoft},
      {"MultiHeadAttention",
       1,
       {f({2, 3, 8}), f({2, 5, 8}), f({2, 5, 8}), f({24})},
       {{"num_heads", 2}},
       "f32[2,3,8]",
       1,
       kMicrosoft},
      {"GroupQueryAttention",
       1,
       {f({2, 3, 32}),
        f({2, 3, 16}),
        f({2, 3, 16}),
        kNone,
        kNone,
        {.type = TensorProto::INT32, .shape = {2}, .values = {2, 2}},
        number(3, TensorProto::INT32)},
       {{"num_heads", 4}, {"kv_num_heads", 2}},
       "f32[2,3,32]",
       3,
       kMicrosoft},
      {"RotaryEmbedding",
       1,
       {f({2, 3, 16}), ints({2, 3}, 0, 6), f({6, 4}), f({6, 4})},
       {},
       "f32[2,3,16]",
       1,
       kMicrosoft},
      {"EmbedLayerNormalization",
       1,
       {i32({2, 3}, 0, 6), i32({2, 3}, 0, 2), f({6, 4}), f({5, 4}), f({2, 4}), f({4}), f({4})},
       {},
       "f32[2,3,4]",
       2,
       kMicrosoft},
      {"BiasAdd", 1, {f({2, 3, 320}), f({320}), f({2, 3, 320})}, {}, "f32[2,3,320]", 1, kMicrosoft, false},
      {"BiasSplitGelu", 1, {f({2, 3, 8}), f({8})}, {}, "f32[2,3,4]", 1, kMicrosoft, false},
      {"FusedGemm", 1, {f({3, 4}), f({4, 5}), f({5})}, {{"activation", "Relu"}}, "f32[3,5]", 1, kMicrosoft},
      {"FusedConv",
       1,
       {f({1, 2, 5, 5}), f({3, 2, 3, 3}), f({3})},
       {{"activation", "Relu"}},
       "f32[1,3,3,3]",
       1,
       kMicrosoft},
  };
}

}  // namespace wl::testing
