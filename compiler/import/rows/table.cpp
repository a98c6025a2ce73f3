#include "compiler/import/table.h"

#include <unordered_map>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

template <Op op>
T one(Call& c) {
  return unary(c, op);
}
template <Op op>
T two(Call& c) {
  return binary(c, op);
}
template <Op op>
T many(Call& c) {
  return variadic(c, op);
}
template <Op op>
T reduction(Call& c) {
  return reduced(c, op, c.in(0));
}
T log(T x) {
  return apply(Op::log, {x});
}
T expm1(T x) {
  return apply(Op::expm1, {x});
}
T tanh(T x) {
  return apply(Op::tanh, {x});
}
T sigmoid(T x) {
  return apply(Op::sigmoid, {x});
}
T max(T a, Arg b) {
  return apply(Op::max, {a, b});
}
T min(T a, Arg b) {
  return apply(Op::min, {a, b});
}
T less(T a, Arg b) {
  return apply(Op::lt, {a, b});
}
T hard_sigmoid(T x, double alpha, double beta) {
  return max(min(x * alpha + beta, 1.0), 0.0);
}

constexpr Row kRows[] = {
    // Rows of elementwise ops.
    {"Abs", 6, one<Op::abs>},
    {"Acos", 7, acos},
    {"Acosh", 9, acosh},
    {"Add", 1, two<Op::add>},
    {"And", 1, two<Op::logical_and>},
    {"Asin", 7, asin},
    {"Asinh", 9, asinh},
    {"Atan", 7, one<Op::atan>},
    {"Atanh", 9, atanh},
    {"BitCast", 26, bit_cast},
    {"BitShift", 11, bit_shift},
    {"BitwiseAnd", 18, two<Op::bit_and>},
    {"BitwiseNot", 18, bitwise_not},
    {"BitwiseOr", 18, two<Op::bit_or>},
    {"BitwiseXor", 18, two<Op::bit_xor>},
    {"Cast", 6, cast_to},
    {"CastLike", 15, cast_like},
    {"Ceil", 6, one<Op::ceil>},
    {"Celu", 12,
     [](Call& c) {
       const double alpha = c.attr_number("alpha", 1);
       return max(c.in(0), 0.0) + min(expm1(c.in(0) / alpha) * alpha, 0.0);
     }},
    {"Clip", 6, clip},
    {"Cos", 7, one<Op::cos>},
    {"Cosh", 9, cosh},
    {"DequantizeLinear", 10, dequantize, kAnyLater, "", /*folds=*/false},
    {"Div", 1, two<Op::div>},
    {"Dropout", 7, dropout},
    {"DynamicQuantizeLinear", 11, dynamic_quantize},
    {"Elu", 6, [](Call& c) { return select(less(c.in(0), 0.0), expm1(c.in(0)) * c.attr_number("alpha", 1), c.in(0)); }},
    {"Equal", 1, two<Op::eq>},
    {"Erf", 9, one<Op::erf>},
    {"Exp", 6, one<Op::exp>},
    {"Floor", 6, one<Op::floor>},
    {"Gelu", 20,
     [](Call& c) { return c.attr_text("approximate", "none") == "tanh" ? gelu_tanh(c.in(0)) : gelu_erf(c.in(0)); }},
    {"Greater", 1, two<Op::gt>},
    {"GreaterOrEqual", 12, two<Op::ge>},
    {"HardSigmoid", 6,
     [](Call& c) { return hard_sigmoid(c.in(0), c.attr_number("alpha", 0.2), c.attr_number("beta", 0.5)); }},
    {"HardSwish", 14, [](Call& c) { return c.in(0) * hard_sigmoid(c.in(0), 1.0 / 6, 0.5); }},
    {"Identity", 1, [](Call& c) { return c.in(0); }},
    {"IsInf", 10, is_inf},
    {"IsNaN", 9,
     [](Call& c) {
       return apply(Op::ne, {c.in(0), c.in(0)});
     }},
    {"LeakyRelu", 6,
     [](Call& c) { return select(less(c.in(0), 0.0), c.in(0) * c.attr_number("alpha", 0.01), c.in(0)); }},
    {"Less", 1, two<Op::lt>},
    {"LessOrEqual", 12, two<Op::le>},
    {"Log", 6, one<Op::log>},
    {"Max", 1, many<Op::max>},
    {"Mean", 1, [](Call& c) { return variadic(c, Op::add) * (1.0 / c.inputs()); }},
    {"Min", 1, many<Op::min>},
    {"Mish", 18, [](Call& c) { return c.in(0) * tanh(softplus(c.in(0))); }},
    {"Mod", 10, modulo},
    {"Mul", 1, two<Op::mul>},
    {"Neg", 6, one<Op::neg>},
    {"Not", 1, one<Op::logical_not>},
    {"Or", 1, two<Op::logical_or>},
    {"PRelu", 1, prelu},
    {"Pow", 1, power},
    {"QuantizeLinear", 10, quantize},
    {"Reciprocal", 6, one<Op::rcp>},
    {"Relu", 6, [](Call& c) { return max(c.in(0), 0.0); }},
    {"Round", 11, one<Op::round>},
    {"Selu", 6,
     [](Call& c) {
       const double alpha = c.attr_number("alpha", 1.67326319217681884765625);
       return select(less(c.in(0), 0.0), expm1(c.in(0)) * alpha, c.in(0)) *
              c.attr_number("gamma", 1.05070102214813232421875);
     }},
    {"Shrink", 9,
     [](Call& c) {
       return in_floats(c, [](Call& d, T x) {
         const double bias = d.attr_number("bias", 0), lambda = d.attr_number("lambd", 0.5);
         return select(less(x, -lambda), x + bias, select(apply(Op::gt, {x, lambda}), x - bias, 0.0));
       });
     }},
    {"Sigmoid", 6, one<Op::sigmoid>},
    {"Sign", 9, one<Op::sign>},
    {"Sin", 7, one<Op::sin>},
    {"Sinh", 9, sinh},
    {"Softplus", 1, [](Call& c) { return softplus(c.in(0)); }},
    {"Softsign", 1, [](Call& c) { return c.in(0) / (abs(c.in(0)) + 1.0); }},
    {"Sqrt", 6, one<Op::sqrt>},
    {"Sub", 1, two<Op::sub>},
    {"Sum", 1, many<Op::add>},
    {"SwiGLU", 28, [](Call& c) { return c.in(0) * sigmoid(c.in(0) * c.attr_number("alpha", 1)) * c.in(1); }},
    {"Swish", 24, [](Call& c) { return c.in(0) * sigmoid(c.in(0) * c.attr_number("alpha", 1)); }},
    {"Tan", 7, tan},
    {"Tanh", 6, one<Op::tanh>},
    {"ThresholdedRelu", 10,
     [](Call& c) {
       return select(apply(Op::gt, {c.in(0), c.attr_number("alpha", 1)}), c.in(0), 0.0);
     }},
    {"Where", 9, [](Call& c) { return select(c.in(0), c.in(1), c.in(2)); }},
    {"Xor", 1, two<Op::logical_xor>},

    // Rows of reductions.
    {"ArgMax", 1, [](Call& c) { return arg_extreme(c, Op::reduce_max); }},
    {"ArgMin", 1, [](Call& c) { return arg_extreme(c, Op::reduce_min); }},
    {"CumProd", 26, [](Call& c) { return cumulative(c, Op::reduce_prod); }},
    {"CumSum", 11, [](Call& c) { return cumulative(c, Op::reduce_sum); }},
    {"Hardmax", 1, hardmax},
    {"LogSoftmax", 1, log_softmax},
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
    {"ReduceL1", 1, [](Call& c) { return reduced(c, Op::reduce_sum, abs(c.in(0))); }},
    {"ReduceL2", 1,
     [](Call& c) { return in_floats(c, [](Call& d, T x) { return sqrt(reduced(d, Op::reduce_sum, x * x)); }); }},
    {"ReduceLogSum", 1,
     [](Call& c) { return in_floats(c, [](Call& d, T x) { return log(reduced(d, Op::reduce_sum, x)); }); }},
    {"ReduceLogSumExp", 1, [](Call& c) { return in_floats(c, reduce_log_sum_exp); }},
    {"ReduceMax", 1, reduction<Op::reduce_max>},
    {"ReduceMean", 1, reduce_mean},
    {"ReduceMin", 1, reduction<Op::reduce_min>},
    {"ReduceProd", 1, reduction<Op::reduce_prod>},
    {"ReduceSum", 1, reduction<Op::reduce_sum>},
    {"ReduceSumSquare", 1, [](Call& c) { return reduced(c, Op::reduce_sum, c.in(0) * c.in(0)); }},
    {"Softmax", 1, softmax},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
    {"TopK", 1, top_k},

    // Rows of normalisations.
    {"BatchNormalization", 1, batch_norm},
    {"GroupNormalization", 18, group_norm},
    {"InstanceNormalization", 6, instance_norm},
    {"LRN", 1, local_response_norm},
    {"LayerNormalization", 17, layer_norm},
    {"LpNormalization", 1, lp_norm},
    {"MeanVarianceNormalization", 9, mean_variance_norm},
    {"RMSNormalization", 23, rms_norm},
    {"SimplifiedLayerNormalization", 1, rms_norm},

    // Rows of contractions and pools.
    {"Attention", 23, attention},
    {"AveragePool", 1, average_pool},
    {"CausalConvWithState", 27, causal_conv},
    {"Col2Im", 18, col_to_im},
    {"Conv", 1, conv},
    {"ConvInteger", 10, conv_integer},
    {"ConvTranspose", 1, conv_transpose},
    {"DFT", 17, dft},
    {"DeformConv", 19, deform_conv},
    {"Det", 11, determinant},
    {"Einsum", 12, einsum},
    {"Gemm", 1, gemm},
    {"GlobalAveragePool", 1, [](Call& c) { return global_pool(c, Op::reduce_sum); }},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, [](Call& c) { return global_pool(c, Op::reduce_max); }},
    {"GRU", 7, gru},
    {"LSTM", 7, lstm},
    {"LinearAttention", 27, linear_attention},
    {"LpPool", 2, lp_pool},
    {"MatMul", 1, mat_mul},
    {"MatMulInteger", 10, mat_mul_integer},
    {"MaxPool", 1, max_pool},
    {"QLinearConv", 10, qlinear_conv},
    {"QLinearMatMul", 10, qlinear_mat_mul},
    {"RNN", 7, rnn},
    {"RoiAlign", 10, roi_align},
    {"RotaryEmbedding", 23, rotary_embedding},
    {"STFT", 17, stft},

    // Rows of views.
    {"CenterCropPad", 18, center_crop_pad},
    {"Concat", 4, concat_all},
    {"DepthToSpace", 1, depth_to_space},
    {"Expand", 8, expand},
    {"Flatten", 1, flatten},
    {"Pad", 2, pad_by},
    {"Reshape", 5, reshape_to},
    {"Slice", 1, slice},
    {"SpaceToDepth", 1, space_to_depth},
    {"Split", 2, split},
    {"Squeeze", 1, squeeze},
    {"Tile", 6, tile},
    {"Transpose", 1, transpose_by},
    {"Unsqueeze", 1, unsqueeze_at},

    // Rows of ops on indices and constants.
    {"AffineGrid", 20, affine_grid},
    {"BlackmanWindow", 17, [](Call& c) { return window_of(c, 0.42, 0.5, 0.08); }},
    {"Compress", 9, compress},
    {"Constant", 1, constant_value},
    {"ConstantOfShape", 9, constant_of_shape},
    {"EyeLike", 9, eye_like},
    {"Gather", 1, gather},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"GridSample", 16, grid_sample},
    {"HammingWindow", 17, [](Call& c) { return window_of(c, 25.0 / 46, 21.0 / 46, 0); }},
    {"HannWindow", 17, [](Call& c) { return window_of(c, 0.5, 0.5, 0); }},
    {"MaxUnpool", 9, max_unpool},
    {"MelWeightMatrix", 17, mel_weight_matrix},
    {"NonMaxSuppression", 10, non_max_suppression},
    {"NonZero", 9, non_zero},
    {"OneHot", 9, one_hot},
    {"Range", 11, range},
    {"Resize", 10, resize},
    {"ReverseSequence", 10, reverse_sequence},
    {"Scatter", 9, scatter_elements},
    {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd},
    {"Shape", 1, shape_of},
    {"Size", 1, size_of_tensor},
    {"TensorScatter", 24, tensor_scatter},
    {"TfIdfVectorizer", 9, count_ngrams},
    {"Trilu", 14, trilu},
    {"Unique", 11, unique},
    {"Upsample", 7, upsample},

    // Rows of ops that the exporters of onnxruntime and PyTorch create by fusing others.
    {"Attention", 1, attention_ms, kAnyLater, kMicrosoft},
    {"BiasAdd", 1, [](Call& c) { return c.in(0) + c.in(1) + c.in(2); }, kAnyLater, kMicrosoft},
    {"BiasGelu", 1, [](Call& c) { return gelu_erf(c.in(0) + c.in(1)); }, kAnyLater, kMicrosoft},
    {"FastGelu", 1, [](Call& c) { return gelu_tanh(c.has(1) ? c.in(0) + c.in(1) : c.in(0)); }, kAnyLater, kMicrosoft},
    {"BiasSplitGelu", 1, bias_split_gelu, kAnyLater, kMicrosoft},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_mat_mul, kAnyLater, kMicrosoft},
    {"EmbedLayerNormalization", 1, embed_layer_norm, kAnyLater, kMicrosoft},
    {"FusedConv", 1, fused_conv, kAnyLater, kMicrosoft},
    {"FusedGemm", 1, fused_gemm, kAnyLater, kMicrosoft},
    {"FusedMatMul", 1, fused_mat_mul, kAnyLater, kMicrosoft},
    {"Gelu", 1, [](Call& c) { return gelu_erf(c.in(0)); }, kAnyLater, kMicrosoft},
    {"GroupQueryAttention", 1, group_query_attention, kAnyLater, kMicrosoft},
    {"MatMulIntegerToFloat", 1, mat_mul_integer_to_float, kAnyLater, kMicrosoft},
    {"MultiHeadAttention", 1, multi_head_attention, kAnyLater, kMicrosoft},
    {"MatMulNBits", 1, mat_mul_n_bits, kAnyLater, kMicrosoft},
    {"QLinearAdd", 1, [](Call& c) { return qlinear_binary(c, Op::add); }, kAnyLater, kMicrosoft},
    {"QLinearConcat", 1, qlinear_concat, kAnyLater, kMicrosoft},
    {"QLinearLeakyRelu", 1,
     [](Call& c) {
       return qlinear_unary(
           c, [](Call& call, T x) { return select(less(x, 0.0), x * call.attr_number("alpha", 0.01), x); });
     },
     kAnyLater, kMicrosoft},
    {"QLinearMul", 1, [](Call& c) { return qlinear_binary(c, Op::mul); }, kAnyLater, kMicrosoft},
    {"QLinearSigmoid", 1, [](Call& c) { return qlinear_unary(c, [](Call&, T x) { return sigmoid(x); }); }, kAnyLater,
     kMicrosoft},
    {"QuickGelu", 1, [](Call& c) { return c.in(0) * sigmoid(c.in(0) * c.attr_number("alpha", 1.702)); }, kAnyLater,
     kMicrosoft},
    {"RotaryEmbedding", 1, rotary_embedding_ms, kAnyLater, kMicrosoft},
    {"SkipLayerNormalization", 1, skip_layer_norm, kAnyLater, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", 1, skip_rms_norm, kAnyLater, kMicrosoft},
};

}  // namespace

std::span<const Row> rows() {
  return kRows;
}

const Row* find_row(std::string_view domain, std::string_view op, int version, const Row** other) {
  if (version > kNewestOpset && domain.empty()) {
    const Schema* schema = schema_of(op, version);
    if (schema != nullptr && schema->since > kNewestOpset) return nullptr;
  }
  static const auto* index = [] {
    auto* map = new std::unordered_multimap<std::string_view, const Row*>;
    for (const Row& row : kRows) map->emplace(row.op, &row);
    return map;
  }();
  const auto [begin, end] = index->equal_range(op);
  for (auto it = begin; it != end; ++it) {
    const Row* row = it->second;
    if (row->domain != domain) continue;
    if (row->since <= version && version <= row->until) return row;
    if (other != nullptr) *other = row;
  }
  return nullptr;
}

}  // namespace wl::onnx_import
