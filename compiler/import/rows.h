// The decompositions that need more than a line; table.cpp says which ONNX op each belongs to. One file per family.
#pragma once

#include "compiler/import/call.h"

namespace wl::onnx_import {

// rows_math.cpp
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
T softplus(T x);
T gelu_erf(T x);
T gelu_tanh(T x);
T sinh_of(T x);
T quantize(Call& c);
T dequantize(Call& c);

// rows_reduce.cpp
T reduced(Call& c, Op op, T x);  // reads axes, keepdims and noop_with_empty_axes of any version
T reduce_mean(Call& c);
T reduce_log_sum_exp(Call& c);
T arg_extreme(Call& c, Op op);
T softmax(Call& c);
T log_softmax(Call& c);
T hardmax(Call& c);
T cum_sum(Call& c);

// rows_norm.cpp
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

// rows_contract.cpp
T mat_mul(Call& c);
T mat_mul_integer(Call& c);
T fused_mat_mul(Call& c);
T gemm(Call& c);
T einsum(Call& c);
T matmul(T a, T b);

// rows_conv.cpp
T conv(Call& c);
T conv_transpose(Call& c);
T max_pool(Call& c);
T average_pool(Call& c);
T lp_pool(Call& c);
T global_pool(Call& c, Op op);
T global_lp_pool(Call& c);

// rows_view.cpp
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

// rows_index.cpp
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

}  // namespace wl::onnx_import
