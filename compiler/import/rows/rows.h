// Functions that decompose an ONNX op into primitive ops, where this takes more than a line of the import table.
// table.cpp maps ONNX ops to these functions. Each family of ops has a file.
#pragma once

#include "compiler/import/call.h"

namespace wl::onnx_import {

constexpr int64_t kMaxSteps = 1024;  // the most steps of a recurrent op or linear attention that are unrolled

inline T abs(T x) {
  return apply(Op::abs, {x});
}
inline T sqrt(T x) {
  return apply(Op::sqrt, {x});
}

// The functions below are defined in math.cpp.
T unary(Call& c, Op op);
T binary(Call& c, Op op);
T variadic(Call& c, Op op);
T power(Call& c);
T modulo(Call& c);
T clip(Call& c);
T prelu(Call& c);
T cast_to(Call& c);
T cast_like(Call& c);
T is_inf(Call& c);
T dropout(Call& c);
T quantize(Call& c);
T dequantize(Call& c);

// The functions below are defined in functions.cpp.
T sinh(Call& c);
T cosh(Call& c);
T tan(Call& c);
T asin(Call& c);
T acos(Call& c);
T asinh(Call& c);
T acosh(Call& c);
T atanh(Call& c);
T softplus(T x);
T gelu_erf(T x);
T gelu_tanh(T x);

// The functions below are defined in reduce.cpp.
T reduced(Call& c, Op op, T x);  // reduces x as attributes axes, keepdims and noop_with_empty_axes say
T reduce_mean(Call& c);
T reduce_log_sum_exp(Call& c, T x);
T in_floats(Call& c, T (*f)(Call& c, T x));  // returns f(input 0); integers are computed in f64 and cast back
T arg_extreme(Call& c, Op op);
T softmax(Call& c);
T log_softmax(Call& c);
T hardmax(Call& c);
// Returns for each element of x whether it is the extreme of its row: equal to `extreme`, or NaN. `extreme` is the
// row's maximum or minimum, broadcast to the shape of x; it is NaN if the row has a NaN.
T is_extreme(T x, T extreme);

// The functions below are defined in norm.cpp.
T layer_norm(Call& c);
T rms_norm(Call& c);
T batch_norm(Call& c);
T group_norm(Call& c);
T instance_norm(Call& c);
T mean_variance_norm(Call& c);
T lp_norm(Call& c);
T local_response_norm(Call& c);
T skip_layer_norm(Call& c);
T skip_rms_norm(Call& c);

// The functions below are defined in contract.cpp.
T mat_mul(Call& c);
T fused_mat_mul(Call& c);
T gemm(Call& c);
T einsum(Call& c);
T matmul(T a, T b);

// The function below is defined in blocks.cpp.
T mat_mul_n_bits(Call& c);

// The functions below are defined in conv.cpp, except with_bias(), which is in math.cpp.
T convolution(Call& c, T x, T w);  // x convolved with w, as the node's padding, strides, dilations and groups say
T conv(Call& c);
T conv_transpose(Call& c);
// Returns y plus input 2, which has a number for each channel; if input 2 is absent, returns y.
T with_bias(Call& c, T y);
T max_pool(Call& c);
T average_pool(Call& c);
T lp_pool(Call& c);
T global_pool(Call& c, Op op);
T global_lp_pool(Call& c);

// The functions below are defined in view.cpp.
T reshape_to(Call& c);
T flatten(Call& c);
T squeeze(Call& c);
T unsqueeze_at(Call& c);
T transpose_by(Call& c);
T expand(Call& c);
T tile(Call& c);
T split(Call& c);
T slice(Call& c);
T pad_by(Call& c);
T concat_all(Call& c);
T depth_to_space(Call& c);
T space_to_depth(Call& c);

// The functions below are defined in index.cpp.
T constant_value(Call& c);
T constant_of_shape(Call& c);
T shape_of(Call& c);
T size_of_tensor(Call& c);
T range(Call& c);
T eye_like(Call& c);
T trilu(Call& c);
T one_hot(Call& c);
T gather(Call& c);
T gather_elements(Call& c);
T gather_nd(Call& c);
// Returns the position, from 0 to `extent` - 1 along an axis, that each index selects; a negative index counts from the
// end. An index out of range is an error. If `known`, the values of the index, is null, this error is reported when the
// graph is executed. Otherwise it is reported while importing, for every `step`-th element of `known` from `from` on.
T place_in(T index, int64_t extent, const Literal* known, int64_t from = 0, int64_t step = 1);
// Fails if one of the elements `from`, `from` + `step`, ... of `known` is not in [`least`, `extent`). Checks nothing if
// `known` is null.
void check_places(Call& c, const Literal* known, int64_t least, int64_t extent, int64_t from = 0, int64_t step = 1);
// Converts row-major indices of elements of a tensor [batch, channels, spatial...] to the indices that these elements
// would have if the spatial axes were stored in the opposite order, the first one innermost.
T columns_first(T index, const Shape& shape);
T gather_axis(T x, T index, int64_t axis);  // returns x[.., index, ..], where the axes of `index` replace `axis`

// The functions below are defined in bits.cpp.
T bit_shift(Call& c);
T bitwise_not(Call& c);
T bit_cast(Call& c);

// The functions below are defined in loss.cpp.
T negative_log_likelihood(Call& c);
T softmax_cross_entropy(Call& c);

// The functions below are defined in attention.cpp and rotary.cpp.
T attention(Call& c);
T rotary_embedding(Call& c);
T rotary_embedding_ms(Call& c);
T linear_attention(Call& c);
T causal_conv(Call& c);

// The functions below are defined in resize.cpp and sample.cpp.
T resize(Call& c);
T upsample(Call& c);
T grid_sample(Call& c);
T affine_grid(Call& c);
T roi_align(Call& c);
T deform_conv(Call& c);

// The functions below are defined in scatter.cpp and sort.cpp.
T scatter_elements(Call& c);
T scatter_nd(Call& c);
T tensor_scatter(Call& c);
T max_unpool(Call& c);
T top_k(Call& c);
T reverse_sequence(Call& c);
T non_zero(Call& c);
T compress(Call& c);
T unique(Call& c);
T non_max_suppression(Call& c);

// The functions below are defined in recurrent.cpp.
T rnn(Call& c);
T gru(Call& c);
T lstm(Call& c);

// The functions below are defined in signal.cpp.
T dft(Call& c);
T stft(Call& c);
T mel_weight_matrix(Call& c);
T window_of(Call& c, double a0, double a1, double a2);  // returns a0 - a1 cos t + a2 cos 2t, a window of a signal
T cumulative(Call& c, Op op);
T determinant(Call& c);

// The functions below are defined in text.cpp.
T count_ngrams(Call& c);

// The functions below are defined in quant.cpp.
T mat_mul_integer(Call& c);
T qlinear_mat_mul(Call& c);
T qlinear_conv(Call& c);
T conv_integer(Call& c);
T dynamic_quantize(Call& c);
T qlinear_binary(Call& c, Op op);
T qlinear_unary(Call& c, T (*f)(Call&, T));
T qlinear_concat(Call& c);
T mat_mul_integer_to_float(Call& c);
T dynamic_quantize_mat_mul(Call& c);

// The functions below are defined in patch.cpp.
T col_to_im(Call& c);
T center_crop_pad(Call& c);

// The functions below are defined in fused.cpp.
T fused_gemm(Call& c);
T fused_conv(Call& c);
T bias_split_gelu(Call& c);
T attention_ms(Call& c);
T multi_head_attention(Call& c);
T group_query_attention(Call& c);
T embed_layer_norm(Call& c);

}  // namespace wl::onnx_import
