"""The memory-bound parts of models, cut out as workloads of their own: the ops between the contractions.

Each row of PARTS has its ONNX form. TORCH and JAX have the form in which users of those frameworks write it. Shapes
exceed the last-level cache.
"""

import numpy as np
import workloads
from onnx import helper
from workloads import Workload, constant, integers, model, scalar, tensor


def softmax_mask(batch, heads, tokens):
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["y"], axis=-1),
    ]
    inputs = [tensor("x", batch, heads, tokens, tokens), tensor("mask", batch, 1, 1, tokens)]
    return lambda: model(nodes, inputs, [tensor("y", batch, heads, tokens, tokens)], [scalar("scale", 0.125)])


def swiglu(rows, columns):
    nodes = [
        helper.make_node("Sigmoid", ["gate"], ["s"]),
        helper.make_node("Mul", ["gate", "s"], ["silu"]),
        helper.make_node("Mul", ["silu", "up"], ["y"]),
    ]
    return lambda: model(nodes, [tensor("gate", rows, columns), tensor("up", rows, columns)], [tensor("y", rows, columns)])


def rotary(heads, tokens, size):
    nodes = [
        helper.make_node("Split", ["x"], ["low", "high"], axis=-1, num_outputs=2),
        helper.make_node("Neg", ["high"], ["negative"]),
        helper.make_node("Concat", ["negative", "low"], ["turned"], axis=-1),
        helper.make_node("Mul", ["x", "cos"], ["a"]),
        helper.make_node("Mul", ["turned", "sin"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    inputs = [tensor("x", 1, heads, tokens, size), tensor("cos", tokens, size), tensor("sin", tokens, size)]
    return lambda: model(nodes, inputs, [tensor("y", 1, heads, tokens, size)])


def kv_concat(batch, heads, tokens, size):
    """A step of decoding: the new token's keys are concatenated to those of earlier tokens. Keys have the layout in which the projection
    produces them, [batch, token, head, element]."""
    nodes = [
        helper.make_node("Reshape", ["new", "split"], ["by_head"]),
        helper.make_node("Transpose", ["by_head"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Concat", ["past", "turned"], ["y"], axis=2),
    ]
    inputs = [tensor("past", batch, heads, tokens - 1, size), tensor("new", batch, 1, heads * size)]
    split = constant("split", np.array([batch, 1, heads, size]))
    return lambda: model(nodes, inputs, [tensor("y", batch, heads, tokens, size)], [split])


def channel_shuffle(batch, channels, side):
    """Interleaves the channels of two branches that have half of the channels each."""
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["both"], axis=1),
        helper.make_node("Reshape", ["both", "grouped"], ["g"]),
        helper.make_node("Transpose", ["g"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "shape"], ["y"]),
    ]
    half = (batch, channels // 2, side, side)
    constants = [
        constant("grouped", np.array([batch, 2, channels // 2, side, side])),
        constant("shape", np.array([batch, channels, side, side])),
    ]
    return lambda: model(nodes, [tensor("a", *half), tensor("b", *half)], [tensor("y", batch, channels, side, side)], constants)


def involution(batch, channels, side, groups, window):
    """The multiplications and sums of an involution, whose weights differ for every pixel and group of channels."""
    taps, pad = window * window, window // 2
    nodes = [helper.make_node("Pad", ["x", "pads"], ["padded"])]
    constants = [constant("pads", np.array([0, 0, pad, pad, 0, 0, pad, pad])), constant("axes", np.array([2, 3]))]
    for i in range(window):
        for j in range(window):
            tap = f"{i}_{j}"
            constants += [constant(f"from{tap}", np.array([i, j])), constant(f"to{tap}", np.array([i + side, j + side]))]
            nodes.append(helper.make_node("Slice", ["padded", f"from{tap}", f"to{tap}", "axes"], [f"s{tap}"]))
            nodes.append(helper.make_node("Unsqueeze", [f"s{tap}", "two"], [f"u{tap}"]))
    nodes += [
        helper.make_node("Concat", [f"u{i}_{j}" for i in range(window) for j in range(window)], ["unfolded"], axis=2),
        helper.make_node("Reshape", ["unfolded", "by_group"], ["patches"]),
        helper.make_node("Unsqueeze", ["weight", "two"], ["weights"]),
        helper.make_node("Mul", ["patches", "weights"], ["products"]),
        helper.make_node("ReduceSum", ["products", "three"], ["summed"], keepdims=0),
        helper.make_node("Reshape", ["summed", "shape"], ["y"]),
    ]
    constants += [constant("two", np.array([2])), constant("three", np.array([3]))]
    constants += [
        constant("by_group", np.array([batch, groups, channels // groups, taps, side, side])),
        constant("shape", np.array([batch, channels, side, side])),
    ]
    inputs = [tensor("x", batch, channels, side, side), tensor("weight", batch, groups, taps, side, side)]
    return lambda: model(nodes, inputs, [tensor("y", batch, channels, side, side)], constants)


def cross_entropy(rows, columns):
    nodes = [
        helper.make_node("LogSoftmax", ["logits"], ["log"], axis=-1),
        helper.make_node("GatherElements", ["log", "labels"], ["picked"], axis=1),
        helper.make_node("Neg", ["picked"], ["y"]),
    ]
    return lambda: model(nodes, [tensor("logits", rows, columns), integers("labels", rows, 1)], [tensor("y", rows, 1)])


INVOLUTION = (32, 64, 56, 4, 7)  # batch, channels, height and width of the image, groups, height and width of the window
SHUFFLE = (256, 116, 28)

PARTS = (
    Workload("softmax_mask", "scale + mask + softmax 16x12x512x512", softmax_mask(16, 12, 512), "copy", {"exp": 16 * 12 * 512**2}),
    Workload("swiglu", "SwiGLU 4096x8192", swiglu(4096, 8192), "copy", {"exp": 4096 * 8192}),
    Workload("rotary", "rotary 1x32x4096x128", rotary(32, 4096, 128), "copy"),
    Workload("kv_concat", "KV concat 8x32x1024x128", kv_concat(8, 32, 1024, 128), "copy"),
    Workload("channel_shuffle", "channel shuffle 256x116x28x28", channel_shuffle(*SHUFFLE), "copy"),
    Workload("involution", "involution 7x7 multiply-sum 32x64x56x56", involution(*INVOLUTION), "copy"),
    Workload("cross_entropy", "log-softmax + gather 2048x32000", cross_entropy(2048, 32000), "read", {"exp": 2048 * 32000}),
)
# The workloads in workloads.WORKLOADS that are memory-bound parts of models, and therefore run with PARTS.
ALSO = ("layer_norm", "bias_gelu", "group_norm_silu")


def torch_functions():
    import torch
    import torch.nn.functional as F

    def turned(x):
        low, high = x.chunk(2, -1)
        return torch.cat((-high, low), -1)

    def concat(_, past, new):
        batch, heads, _, size = past.shape
        return torch.cat((past, new.view(batch, 1, heads, size).transpose(1, 2)), 2)

    def shuffle(_, a, b):
        both = torch.cat((a, b), 1)
        batch, channels, height, width = both.shape
        return both.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(both.shape)

    def multiply_sum(_, x, weight):
        batch, channels, side, groups, window = INVOLUTION
        patches = F.unfold(x, window, padding=window // 2)
        patches = patches.view(batch, groups, channels // groups, window * window, side, side)
        return (patches * weight.unsqueeze(2)).sum(3).view(x.shape)

    return {
        "softmax_mask": lambda _, x, mask: F.softmax(x * 0.125 + mask, -1),
        "swiglu": lambda _, gate, up: F.silu(gate) * up,
        "rotary": lambda _, x, cos, sin: x * cos + turned(x) * sin,
        "kv_concat": concat,
        "channel_shuffle": shuffle,
        "involution": multiply_sum,
        "cross_entropy": lambda _, logits, labels: F.cross_entropy(logits, labels.view(-1), reduction="none").view(-1, 1),
    }


def jax_functions():
    import jax
    import jax.numpy as jnp

    def turned(x):
        low, high = jnp.split(x, 2, -1)
        return jnp.concatenate((-high, low), -1)

    def concat(past, new):
        batch, heads, _, size = past.shape
        return jnp.concatenate((past, new.reshape(batch, 1, heads, size).transpose(0, 2, 1, 3)), 2)

    def shuffle(a, b):
        both = jnp.concatenate((a, b), 1)
        batch, channels, height, width = both.shape
        return both.reshape(batch, 2, channels // 2, height, width).swapaxes(1, 2).reshape(both.shape)

    def multiply_sum(x, weight):
        batch, channels, side, groups, window = INVOLUTION
        pad = window // 2
        padded = jnp.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        total = jnp.zeros((batch, groups, channels // groups, side, side), jnp.float32)
        for i in range(window):
            for j in range(window):
                patch = padded[:, :, i : i + side, j : j + side].reshape(total.shape)
                total = total + patch * weight[:, :, None, i * window + j]
        return total.reshape(x.shape)

    return {
        "softmax_mask": lambda x, mask: jax.nn.softmax(x * 0.125 + mask),
        "swiglu": lambda gate, up: jax.nn.silu(gate) * up,
        "rotary": lambda x, cos, sin: x * cos + turned(x) * sin,
        "kv_concat": concat,
        "channel_shuffle": shuffle,
        "involution": multiply_sum,
        "cross_entropy": lambda logits, labels: -jnp.take_along_axis(jax.nn.log_softmax(logits), labels, 1),
    }
