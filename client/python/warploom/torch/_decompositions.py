"""What PyTorch takes apart before the rows of TABLE see it."""

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from ._aten import TABLE

aten = torch.ops.aten

# Operators of core ATen that are sums of others here.
_FURTHER = [
    aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_no_training, aten._softmax, aten._log_softmax,
    aten._safe_softmax, aten.gelu, aten.silu, aten.hardswish, aten.hardsigmoid, aten.leaky_relu, aten.elu, aten.softplus, aten.logit,
    aten._adaptive_avg_pool2d, aten.upsample_nearest2d, aten.pixel_shuffle, aten.native_layer_norm_backward, aten.gelu_backward,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.tanh_backward, aten.sigmoid_backward, aten.silu_backward,
    aten.threshold_backward, aten.embedding_dense_backward, aten.stack, aten.tril, aten.triu, aten.logsumexp,
    aten._native_batch_norm_legit_functional, aten._batch_norm_with_update_functional, aten.addmv, aten.heaviside, aten.dist,
    aten.grid_sampler_2d,
]  # fmt: skip


def decompositions():
    """PyTorch's definitions of operators that have no row."""
    known = dict(core_aten_decompositions().items()) | get_decompositions(_FURTHER)
    return {operator: function for operator, function in known.items() if operator not in TABLE}
