#include "tests/unit/import/case_values.h"

namespace wl::testing {
namespace {

std::vector<Case> elementwise() {
  std::vector<Case> cases;
  for (const char* op : {"Abs",      "Ceil",      "Cos",      "Elu",  "Erf",   "Exp",  "Floor",   "HardSigmoid",
                         "Identity", "LeakyRelu", "Neg",      "Relu", "Round", "Selu", "Sigmoid", "Sign",
                         "Sin",      "Softplus",  "Softsign", "Tanh", "Sinh",  "Cosh", "Asinh",   "ThresholdedRelu",
                         "Celu",     "HardSwish", "Tan"}) {
    cases.push_back({op, 17, {f({3, 5})}, {}, "f32[3,5]"});
  }
  for (const char* op : {"Log", "Sqrt", "Reciprocal", "Acosh"})
    cases.push_back({op, 17, {positive({3, 5})}, {}, "f32[3,5]"});
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    cases.push_back({op, 14, {f({4, 1, 3}), positive({2, 1})}, {}, "f32[4,2,3]"});
    cases.push_back({op, 14, {ints({6}, -50, 50), ints({6}, 1, 9)}, {}, "i64[6]"});
  }
  for (const char* op : {"And", "Or", "Xor"}) cases.push_back({op, 7, {bools({2, 3}), bools({3})}, {}, "b1[2,3]"});
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    cases.push_back({op, 16, {ints({3, 4}, 0, 4), ints({4}, 0, 4)}, {}, "b1[3,4]"});
  }
  for (const char* op : {"Max", "Mean", "Min", "Sum"}) {
    cases.push_back({op, 13, {f({2, 3}), f({3}), f({2, 1})}, {}, "f32[2,3]"});
  }
  const std::vector<Case> more = {
      {"Atanh", 9, {f({7}, 0, 0.2)}, {}, "f32[7]"},
      {"Cast", 13, {f({9}, 0, 4)}, {{"to", TensorProto::INT64}}, "i64[9]"},
      {"Cast", 13, {ints({9}, -3, 3)}, {{"to", TensorProto::BOOL}}, "b1[9]"},
      {"Cast", 13, {bools({9})}, {{"to", TensorProto::FLOAT}}, "f32[9]"},
      {"Cast", 13, {f({9})}, {{"to", TensorProto::FLOAT16}}, "f16[9]"},
      {"CastLike", 15, {ints({9}, -3, 3), f({1})}, {}, "f32[9]"},
      {"Clip", 6, {f({9})}, {{"min", -0.5}, {"max", 0.25}}, "f32[9]"},
      {"Clip", 13, {f({9}), number(-0.5), number(0.25)}, {}, "f32[9]"},
      {"Clip", 13, {f({9}), kNone, number(0.25)}, {}, "f32[9]"},
      {"DequantizeLinear",
       13,
       {ints({4, 3}, -9, 9, TensorProto::INT8), number(0.25), number(3, TensorProto::INT8)},
       {},
       "f32[4,3]"},
      {"DequantizeLinear", 13, {ints({4, 3}, 0, 9, TensorProto::UINT8), positive({3})}, {{"axis", 1}}, "f32[4,3]"},
      {"Dropout", 13, {f({5})}, {}, "f32[5]"},
      {"Dropout", 10, {f({5})}, {{"ratio", 0.3}}, "f32[5]"},
      {"Gelu", 20, {f({33})}, {}, "f32[33]"},
      {"Gelu", 20, {f({33})}, {{"approximate", "tanh"}}, "f32[33]"},
      {"IsInf", 10, {f({9})}, {{"detect_negative", 0}}, "b1[9]"},
      {"IsNaN", 9, {f({9})}, {}, "b1[9]"},
      {"Mish", 18, {f({9})}, {}, "f32[9]"},
      {"Mod", 13, {ints({9}, -20, 20), ints({9}, 1, 7)}, {}, "i64[9]"},
      {"Mod", 13, {f({9}, 0, 9), positive({9})}, {{"fmod", 1}}, "f32[9]"},
      {"Not", 1, {bools({2, 3})}, {}, "b1[2,3]"},
      {"PRelu", 16, {f({2, 3, 4}), f({3, 1})}, {}, "f32[2,3,4]"},
      {"Pow", 15, {f({9}), number(3)}, {}, "f32[9]"},
      {"Pow", 15, {positive({9}), f({9})}, {}, "f32[9]"},
      {"Pow", 15, {f({9}), number(2, TensorProto::INT64)}, {}, "f32[9]"},
      {"QuantizeLinear", 13, {f({4, 3}, 0, 30), number(0.5), number(10, TensorProto::UINT8)}, {}, "u8[4,3]"},
      {"QuantizeLinear", 13, {f({4, 3}, 0, 3), number(0.5), number(-4, TensorProto::INT8)}, {}, "i8[4,3]"},
      {"Shrink", 9, {f({33})}, {{"lambd", 0.5}, {"bias", 0.25}}, "f32[33]"},
      {"SwiGLU", 28, {f({3, 5}), f({3, 5})}, {}, "f32[3,5]", 1, "", false},
      {"Swish", 24, {f({9})}, {}, "f32[9]", 1, "", false},
      {"Where", 16, {bools({2, 1}), f({3}), number(0.5)}, {}, "f32[2,3]"},
  };
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<Case> reductions() {
  std::vector<Case> cases;
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                         "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    cases.push_back({op, 11, {f({2, 3, 4})}, {{"axes", Ints{1, -1}}, {"keepdims", 0}}, "f32[2]"});
    cases.push_back({op, 18, {f({2, 3, 4}), list({-2})}, {}, "f32[2,1,4]"});
    cases.push_back({op, 18, {f({2, 3, 4})}, {{"noop_with_empty_axes", 1}}, "f32[2,3,4]"});
  }
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    cases.push_back({op, 11, {f({2, 3, 4})}, {}, "f32[2,3,4]"});
    cases.push_back({op, 11, {f({2, 3, 4})}, {{"axis", 2}}, "f32[2,3,4]"});
    cases.push_back({op, 13, {f({2, 3, 4})}, {{"axis", 1}}, "f32[2,3,4]"});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    cases.push_back({op, 13, {f({2, 7})}, {{"axis", 1}, {"keepdims", 0}}, "i64[2]"});
    cases.push_back({op, 13, {ints({5, 7}, 0, 3, TensorProto::INT32)}, {{"select_last_index", 1}}, "i64[1,7]"});
  }
  const std::vector<Case> more = {
      {"ReduceLogSum", 18, {positive({2, 3, 4}), list({0, 2})}, {}, "f32[1,3,1]"},
      {"CumSum", 14, {f({2, 5}), number(1, TensorProto::INT64)}, {}, "f32[2,5]"},
      {"CumSum", 14, {f({2, 5}), number(-1, TensorProto::INT64)}, {{"exclusive", 1}}, "f32[2,5]"},
      {"CumSum", 14, {f({2, 5}), number(0, TensorProto::INT64)}, {{"reverse", 1}}, "f32[2,5]"},
      {"CumSum", 14, {f({2, 5}), number(1, TensorProto::INT64)}, {{"reverse", 1}, {"exclusive", 1}}, "f32[2,5]"},
  };
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<Case> normalisations() {
  return {
      {"BatchNormalization", 15, {f({2, 3, 4, 5}), f({3}), f({3}), f({3}), positive({3})}, {}, "f32[2,3,4,5]"},
      {"BatchNormalization", 9, {f({2, 3}), f({3}), f({3}), f({3}), positive({3})}, {{"epsilon", 0.1}}, "f32[2,3]"},
      {"GroupNormalization", 18, {f({2, 6, 5}), f({2}), f({2})}, {{"num_groups", 2}}, "f32[2,6,5]"},
      {"GroupNormalization", 21, {f({2, 6, 5}), f({6}), f({6})}, {{"num_groups", 3}}, "f32[2,6,5]"},
      {"InstanceNormalization", 6, {f({2, 3, 4, 5}), f({3}), f({3})}, {}, "f32[2,3,4,5]"},
      {"LRN", 13, {f({1, 7, 2, 3})}, {{"size", 3}, {"alpha", 0.5}}, "f32[1,7,2,3]"},
      {"LRN", 13, {f({1, 7, 2, 3})}, {{"size", 4}}, "f32[1,7,2,3]", 1, "", false},
      {"LayerNormalization", 17, {f({3, 4, 5}), f({5}), f({5})}, {}, "f32[3,4,5]"},
      {"LayerNormalization", 17, {f({3, 4, 5}), f({4, 5})}, {{"axis", 1}, {"epsilon", 0.1}}, "f32[3,4,5]", 3},
      {"LayerNormalization", 17, {f64({3, 5}), f64({5}), f64({5})}, {}, "f64[3,5]"},
      {"LpNormalization", 1, {f({3, 5})}, {{"axis", 0}, {"p", 1}}, "f32[3,5]"},
      {"LpNormalization", 1, {f({3, 5})}, {}, "f32[3,5]"},
      {"MeanVarianceNormalization", 13, {f({2, 3, 4, 5})}, {}, "f32[2,3,4,5]"},
      {"RMSNormalization", 23, {f({3, 5}), f({5})}, {}, "f32[3,5]"},
      {"SimplifiedLayerNormalization", 1, {f({3, 5}), f({5})}, {}, "f32[3,5]", 1, "", false},
      {"SkipLayerNormalization",
       1,
       {f({1, 3, 5}), f({1, 3, 5}), f({5}), f({5}), f({5})},
       {},
       "f32[1,3,5]",
       1,
       "com.microsoft"},
      {"SkipSimplifiedLayerNormalization",
       1,
       {f({1, 3, 5}), f({1, 3, 5}), f({5})},
       {},
       "f32[1,3,5]",
       1,
       "com.microsoft"},
  };
}

std::vector<Case> contractions() {
  return {
      {"Einsum", 12, {f({2, 3, 4}), f({2, 4, 5})}, {{"equation", "bij, bjk -> bik"}}, "f32[2,3,5]"},
      {"Einsum", 12, {f({3, 4})}, {{"equation", "ij->j"}}, "f32[4]"},
      {"Einsum", 12, {f({3, 4}), f({4, 5})}, {{"equation", "ij,jk"}}, "f32[3,5]"},
      {"Einsum", 12, {f({2, 1, 3, 4}), f({1, 5, 4, 6})}, {{"equation", "...ij,...jk->...ik"}}, "f32[2,5,3,6]"},
      {"Einsum", 12, {f({2, 3}), f({3, 4}), f({4, 5})}, {{"equation", "ij,jk,kl->il"}}, "f32[2,5]"},
      {"Gemm", 13, {f({3, 4}), f({4, 5}), f({5})}, {}, "f32[3,5]"},
      {"Gemm",
       13,
       {f({4, 3}), f({5, 4}), f({3, 1})},
       {{"transA", 1}, {"transB", 1}, {"alpha", 0.5}, {"beta", 2.0}},
       "f32[3,5]"},
      {"Gemm", 11, {f({3, 4}), f({4, 5})}, {}, "f32[3,5]"},
      {"MatMul", 13, {f({3, 4}), f({4, 5})}, {}, "f32[3,5]"},
      {"MatMul", 13, {f({2, 1, 3, 4}), f({5, 4, 6})}, {}, "f32[2,5,3,6]"},
      {"MatMul", 13, {f({4}), f({2, 4, 5})}, {}, "f32[2,5]"},
      {"MatMul", 13, {f({2, 3, 4}), f({4})}, {}, "f32[2,3]"},
      {"MatMul", 13, {f({4}), f({4})}, {}, "f32[]"},
      {"MatMulInteger",
       10,
       {ints({3, 4}, 0, 255, TensorProto::UINT8), ints({4, 5}, 0, 255, TensorProto::UINT8),
        number(7, TensorProto::UINT8)},
       {},
       "i32[3,5]"},
      {"FusedMatMul",
       1,
       {f({2, 4, 3}), f({2, 5, 4})},
       {{"transA", 1}, {"transB", 1}, {"alpha", 0.5}},
       "f32[2,3,5]",
       1,
       "com.microsoft"},
      {"BiasGelu", 1, {f({3, 5}), f({5})}, {}, "f32[3,5]", 1, "com.microsoft"},
      {"FastGelu", 1, {f({3, 5}), f({5})}, {}, "f32[3,5]", 1, "com.microsoft"},
      {"Gelu", 1, {f({3, 5})}, {}, "f32[3,5]", 1, "com.microsoft"},
      {"QuickGelu", 1, {f({3, 5})}, {}, "f32[3,5]", 1, "com.microsoft"},
  };
}

std::vector<Case> convolutions() {
  return {
      {"Conv", 11, {f({2, 3, 9, 8}), f({4, 3, 3, 2}), f({4})}, {{"pads", Ints{1, 0, 1, 1}}}, "f32[2,4,9,8]"},
      {"Conv",
       11,
       {f({1, 4, 9, 9}), f({6, 2, 3, 3})},
       {{"group", 2}, {"strides", Ints{2, 2}}, {"dilations", Ints{2, 1}}},
       "f32[1,6,3,4]"},
      {"Conv", 11, {f({1, 4, 7, 7}), f({4, 1, 3, 3})}, {{"group", 4}, {"auto_pad", "SAME_UPPER"}}, "f32[1,4,7,7]"},
      {"Conv", 11, {f({2, 3, 7, 7}), f({5, 3, 1, 1}), f({5})}, {{"strides", Ints{2, 2}}}, "f32[2,5,4,4]"},
      {"Conv", 11, {f({2, 3, 10}), f({4, 3, 3})}, {{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2}}}, "f32[2,4,5]"},
      {"Conv", 11, {f({1, 2, 4, 5, 6}), f({3, 2, 2, 2, 2})}, {}, "f32[1,3,3,4,5]"},
      {"ConvTranspose",
       11,
       {f({1, 3, 4, 5}), f({3, 2, 3, 3}), f({2})},
       {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 1, 1}}, {"output_padding", Ints{1, 0}}},
       "f32[1,2,8,14]"},
      {"ConvTranspose", 11, {f({1, 4, 5}), f({4, 3, 3})}, {{"group", 2}, {"dilations", Ints{2}}}, "f32[1,6,9]"},
      {"ConvTranspose",
       11,
       {f({1, 4, 3, 4}), f({4, 3, 2, 5}), f({6})},
       {{"group", 2}, {"strides", Ints{2, 3}}, {"pads", Ints{0, 4, 0, 1}}},
       "f32[1,6,6,9]"},
      {"ConvTranspose",
       11,
       {f({1, 2, 5}), f({2, 3, 2})},
       {{"strides", Ints{3}}, {"dilations", Ints{2}}},
       "f32[1,3,15]"},
      {"ConvTranspose",
       11,
       {f({2, 2, 5}), f({2, 3, 2})},
       {{"strides", Ints{4}}, {"output_shape", Ints{20}}},
       "f32[2,3,20]"},
      {"MaxPool",
       12,
       {f({1, 2, 9, 8})},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 0}}},
       "f32[1,2,5,4]"},
      {"MaxPool",
       12,
       {f({1, 2, 9, 8})},
       {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}},
       "f32[1,2,4,4]"},
      {"MaxPool", 12, {f({1, 2, 9})}, {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}}, "f32[1,2,5]"},
      {"AveragePool",
       11,
       {f({1, 2, 9, 8})},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 0}}},
       "f32[1,2,5,4]"},
      {"AveragePool",
       11,
       {f({1, 2, 9, 8})},
       {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", 1}},
       "f32[1,2,9,8]"},
      {"AveragePool",
       19,
       {f({1, 2, 9, 8})},
       {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}},
       "f32[1,2,4,4]"},
      {"GlobalAveragePool", 1, {f({2, 3, 4, 5})}, {}, "f32[2,3,1,1]"},
      {"GlobalMaxPool", 1, {f({2, 3, 4, 5})}, {}, "f32[2,3,1,1]"},
      {"GlobalLpPool", 2, {f({2, 3, 4, 5})}, {{"p", 3}}, "f32[2,3,1,1]"},
      {"LpPool", 11, {f({1, 2, 9, 8})}, {{"kernel_shape", Ints{3, 2}}, {"p", 2}}, "f32[1,2,7,7]"},
  };
}

std::vector<Case> views() {
  return {
      {"Concat", 13, {f({2, 3}), f({2, 1}), f({2, 2})}, {{"axis", -1}}, "f32[2,6]"},
      {"DepthToSpace", 13, {f({1, 8, 2, 3})}, {{"blocksize", 2}}, "f32[1,2,4,6]"},
      {"DepthToSpace", 13, {f({1, 8, 2, 3})}, {{"blocksize", 2}, {"mode", "CRD"}}, "f32[1,2,4,6]"},
      {"Expand", 13, {f({3, 1}), list({2, 1, 4})}, {}, "f32[2,3,4]"},
      {"Flatten", 13, {f({2, 3, 4})}, {{"axis", 2}}, "f32[6,4]"},
      {"Flatten", 13, {f({2, 3, 4})}, {{"axis", 0}}, "f32[1,24]"},
      {"Pad", 13, {f({2, 3}), list({0, 1, 2, 0}), number(0.5)}, {}, "f32[4,4]"},
      {"Pad", 13, {f({4, 5}), list({1, -1, 0, 2})}, {}, "f32[5,6]"},
      {"Pad", 18, {f({4, 5}), list({2, 3}), kNone, list({1})}, {{"mode", "reflect"}}, "f32[4,10]"},
      {"Pad", 13, {f({4, 5}), list({2, 3, 0, 1})}, {{"mode", "edge"}}, "f32[6,9]"},
      {"Pad", 19, {f({4, 5}), list({2, 3, 0, 1})}, {{"mode", "wrap"}}, "f32[6,9]"},
      {"Pad", 2, {f({2, 3})}, {{"pads", Ints{0, 1, 2, 0}}, {"value", 0.5}}, "f32[4,4]", 1, "", false},
      {"Reshape", 13, {f({2, 3, 4}), list({0, -1})}, {}, "f32[2,12]"},
      {"Slice", 13, {f({5, 6}), list({1, -1}), list({1000, -1000}), list({0, 1}), list({2, -2})}, {}, "f32[2,3]"},
      {"Slice", 13, {f({5, 6}), list({4}), list({2})}, {}, "f32[0,6]"},
      {"Slice", 9, {f({5, 6})}, {{"starts", Ints{1}}, {"ends", Ints{-1}}, {"axes", Ints{1}}}, "f32[5,4]"},
      {"SpaceToDepth", 13, {f({1, 2, 4, 6})}, {{"blocksize", 2}}, "f32[1,8,2,3]"},
      {"Split", 13, {f({2, 7}), list({2, 4, 1})}, {{"axis", 1}}, "f32[2,2]", 3},
      {"Split", 11, {f({2, 6})}, {{"axis", 1}}, "f32[2,2]", 3},
      {"Split", 18, {f({2, 7})}, {{"axis", 1}, {"num_outputs", 3}}, "f32[2,3]", 3},
      {"Squeeze", 13, {f({1, 3, 1, 2}), list({-2})}, {}, "f32[1,3,2]"},
      {"Squeeze", 11, {f({1, 3, 1, 2})}, {}, "f32[3,2]"},
      {"Tile", 13, {f({2, 3}), list({2, 3})}, {}, "f32[4,9]"},
      {"Transpose", 13, {f({2, 3, 4})}, {}, "f32[4,3,2]"},
      {"Transpose", 13, {f({2, 3, 4})}, {{"perm", Ints{1, 2, 0}}}, "f32[3,4,2]"},
      {"Unsqueeze", 13, {f({3, 2}), list({0, -1})}, {}, "f32[1,3,2,1]"},
      {"Unsqueeze", 11, {f({3, 2})}, {{"axes", Ints{1}}}, "f32[3,1,2]"},
  };
}

std::vector<Case> indices() {
  return {
      {"Constant", 13, {}, {{"value", floats({3}, {1, 2, 3})}}, "f32[3]"},
      {"Constant", 13, {}, {{"value_floats", Reals{1, 2}}}, "f32[2]"},
      {"Constant", 13, {}, {{"value_ints", Ints{1, 2}}}, "i64[2]"},
      {"Constant", 13, {}, {{"value_float", 0.5}}, "f32[]"},
      {"Constant", 13, {}, {{"value_int", 7}}, "i64[]"},
      {"ConstantOfShape", 9, {list({2, 3})}, {{"value", floats({1}, {0.5})}}, "f32[2,3]"},
      {"EyeLike", 9, {f({3, 4})}, {{"k", 1}}, "f32[3,4]"},
      {"Gather", 13, {f({5, 4}), ints({2, 3}, -5, 5)}, {}, "f32[2,3,4]"},
      {"Gather", 13, {f({2, 5, 4}), list({-1, 0})}, {{"axis", 1}}, "f32[2,2,4]"},
      {"Gather", 13, {f({2, 5, 4}), number(2, TensorProto::INT64)}, {{"axis", 1}}, "f32[2,4]"},
      {"GatherElements", 13, {f({5, 4}), ints({3, 2}, -5, 5)}, {}, "f32[3,2]"},
      {"GatherND", 13, {f({3, 4, 5}), ints({2, 6, 2}, -3, 3)}, {}, "f32[2,6,5]"},
      {"OneHot",
       11,
       {ints({2, 3}, -4, 4), number(5, TensorProto::INT64), floats({2}, {-1, 2})},
       {{"axis", 1}},
       "f32[2,5,3]"},
      {"Range", 11, {number(3), number(-2), number(-0.5)}, {}, "f32[10]"},
      {"Range",
       11,
       {number(2, TensorProto::INT64), number(20, TensorProto::INT64), number(5, TensorProto::INT64)},
       {},
       "i64[4]"},
      {"Shape", 15, {f({2, 3, 4})}, {{"start", 1}}, "i64[2]"},
      {"Size", 13, {f({2, 3, 4})}, {}, "i64[]"},
      {"Trilu", 14, {f({2, 4, 5}), number(1, TensorProto::INT64)}, {}, "f32[2,4,5]"},
      {"Trilu", 14, {f({4, 5})}, {{"upper", 0}}, "f32[4,5]"},
      {"Add", 14, {f16({3}), f16({3})}, {}, "f16[3]"},
  };
}

}  // namespace

std::vector<Case> import_cases() {
  std::vector<Case> all;
  for (auto* group :
       {elementwise, reductions, normalisations, contractions, convolutions, views, indices, attention_cases,
        signal_cases, sampling_cases, scatter_cases, quantised_cases, fused_cases, block_cases}) {
    auto part = group();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace wl::testing
