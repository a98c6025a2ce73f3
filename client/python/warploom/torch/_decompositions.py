"""Decompositions: functions that take operators without a row in TABLE apart before the graph is lowered."""

import functools
import math

import torch
import torch.nn.functional as functional
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._prims_common import suggest_memory_format

from . import _resize
from ._aten import TABLE

aten = torch.ops.aten

# Operators of core ATen without a row in TABLE, for which PyTorch's decompositions are used.
_FURTHER = [
    aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_no_training, aten._softmax, aten._log_softmax,
    aten._safe_softmax, aten.gelu, aten.silu, aten.hardswish, aten.hardsigmoid, aten.leaky_relu, aten.elu, aten.softplus, aten.logit,
    aten._adaptive_avg_pool2d, aten.upsample_nearest2d, aten.pixel_shuffle, aten.native_layer_norm_backward, aten.gelu_backward,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.tanh_backward, aten.sigmoid_backward, aten.silu_backward,
    aten.threshold_backward, aten.embedding_dense_backward, aten.stack, aten.tril, aten.triu, aten.logsumexp,
    aten._native_batch_norm_legit_functional, aten._batch_norm_with_update_functional, aten.addmv, aten.heaviside, aten.dist,
]  # fmt: skip


# The two functions that decompose nn.MultiheadAttention and nn.TransformerEncoderLayer in eval mode, which PyTorch computes by one operator
# each.
def _mask_of(mask, mask_type, scores):
    """Returns the mask broadcast to the shape of the scores, [batch, heads, queries, keys]. mask_type says which axes the given mask has:
    0: queries and keys; 1: batch and keys; 2: all four."""
    mask = mask.to(torch.bool)
    return mask[:, None, None, :] if mask_type == 1 else mask.expand(scores.shape)


def _attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True,
               average_attn_weights=True, mask_type=None):  # fmt: skip
    def heads(x, part):
        x = functional.linear(x, qkv_weight.chunk(3)[part], qkv_bias.chunk(3)[part])
        return x.view(*x.shape[:2], num_head, embed_dim // num_head).transpose(1, 2)

    q, k, v = (heads(x, part) for part, x in enumerate((query, key, value)))
    scores = torch.matmul(q * (embed_dim // num_head) ** -0.5, k.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(_mask_of(mask, mask_type, scores), -math.inf)
    weights = scores.softmax(-1)
    result = functional.linear(torch.matmul(weights, v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1,
                   norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):  # fmt: skip
    def attention(x):
        return _attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]

    def feed_forward(x):
        activation = functional.gelu if use_gelu else functional.relu
        return functional.linear(activation(functional.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    x = src
    for block, weight, bias in ((attention, norm_weight_1, norm_bias_1), (feed_forward, norm_weight_2, norm_bias_2)):
        if norm_first:
            x = x + block(functional.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = functional.layer_norm(x + block(x), (embed_dim,), weight, bias, eps)
    return x


_OWN = {
    aten._native_multi_head_attention.default: _attention, aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    aten.grid_sampler_2d.default: _resize.grid_sampler_2d,
} | _resize.OVERLOADS  # fmt: skip

# Operators whose first result in eager is contiguous or, if the first operand is channels last, channels last as well. PyTorch's
# decompositions lose this layout, so _in_format() restores it.
_IN_FORMAT = {
    aten.native_batch_norm, aten._native_batch_norm_legit, aten._native_batch_norm_legit_no_training, aten._native_batch_norm_legit_functional,
    aten._batch_norm_with_update, aten._batch_norm_with_update_functional, aten._batch_norm_no_update, aten._adaptive_avg_pool2d,
    aten.channel_shuffle,
}  # fmt: skip

# Operators whose first result is contiguous in eager; _contiguous() makes it so after PyTorch's decomposition.
_CONTIGUOUS = {aten.log_sigmoid_forward.default, aten.pow.Scalar}

# Binary operators whose result has, in eager, the same layout as the result of any elementwise operator. PyTorch's decompositions lose this
# layout, so _of_pairs() restores it.
_OF_PAIRS = {
    aten.copysign.Tensor, aten.div.Tensor_mode, aten.floor_divide.default, aten.heaviside.default, aten.logaddexp.default, aten.logaddexp2.default,
    aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default, aten.xlogy.Tensor, aten.special_xlog1py.default,
}  # fmt: skip


def _in_format(made, x, *_, **__):
    return made.contiguous(memory_format=suggest_memory_format(x))


def _contiguous(made, *_, **__):
    return made.contiguous()


def _of_pairs(made, x, y, **__):
    usual = aten.eq(x, y)
    if made.is_contiguous() and usual.is_contiguous():
        return made
    order = sorted(range(made.dim()), key=usual.stride().__getitem__, reverse=True)
    back = [order.index(axis) for axis in range(made.dim())]
    return made.permute(order).contiguous().permute(back)


def _rolled(made, x, shifts, dims=()):
    """Returns the layout of aten.roll's result in eager: that of the operand, because two parts of the operand are concatenated; but
    contiguous if the operand is rolled as one flat axis, or if a part is empty."""
    if not dims or any(shift % max(x.shape[axis], 1) == 0 for shift, axis in zip(shifts, dims)):
        return made.contiguous()
    return _in_format(made, x)


def _laid_out(function, lay):
    """Returns a decomposition that calls another one, and passes its first result and the arguments to `lay`, which returns the result in
    another layout."""

    @functools.wraps(function)
    def laid(*arguments, **named):
        made = function(*arguments, **named)
        if made is NotImplemented:
            return made
        if isinstance(made, tuple):
            return (lay(made[0], *arguments, **named), *made[1:])
        return lay(made, *arguments, **named)

    return laid


def _itself(operator):
    """Returns a decomposition of an operator that has a row: it calls the operator itself and, for that inner call, returns NotImplemented,
    which leaves the call as it is."""
    inside = []

    def call(*arguments, **named):
        if inside:
            return NotImplemented
        inside.append(True)
        try:
            return operator(*arguments, **named)
        finally:
            inside.pop()

    return call


# Operators that draw random numbers. They are not decomposed, so that eager's kernels draw the same numbers as without the backend.
_RANDOM = {overload for name in ("bernoulli", "native_dropout", "normal_functional", "uniform", "rrelu_with_noise", "rrelu_with_noise_functional")
           if hasattr(aten, name) for overload in map(getattr(aten, name).__getattr__, getattr(aten, name).overloads())}  # fmt: skip


@functools.cache
def decompositions():
    """Returns the decompositions by operator: PyTorch's, for operators without a row, and those of this file. The result is cached, since
    PyTorch takes a tenth of a second to list its own."""
    known = dict(core_aten_decompositions().items()) | get_decompositions([*_FURTHER, aten.log_sigmoid_forward]) | _OWN
    known = {operator: function for operator, function in known.items() if operator not in TABLE and operator not in _RANDOM}
    lays = {operator: _in_format for operator in known if operator.overloadpacket in _IN_FORMAT} | {aten.roll.default: _rolled}
    lays |= dict.fromkeys(_CONTIGUOUS, _contiguous) | dict.fromkeys(_OF_PAIRS, _of_pairs)
    return known | {operator: _laid_out(known.get(operator) or _itself(operator), lay) for operator, lay in lays.items()}
