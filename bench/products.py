"""Products as workloads of their own: square ones, rows times constant weights, convolutions of image models, attention.

Each row of PRODUCTS has its ONNX form; torch_functions and jax_functions have the form in which users of those frameworks write it, by the kind
of product. Weights are inputs that the model's metadata names, as in the models of other workloads.
"""

import dataclasses
import math

import numpy as np
import workloads
from onnx import TensorProto, helper
from workloads import Workload, constant, scalar, tensor


def model(nodes, inputs, outputs, weights=(), constants=()):
    made = workloads.model(nodes, inputs, outputs, constants)
    helper.set_model_props(made, {"warploom.weights": ",".join(weights)})
    return made


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution with square images, windows and strides, padded so that the image keeps its side at stride 1. `groups` means the same
    as in ONNX."""

    channels: int
    side: int
    filters: int
    window: int
    stride: int = 1
    groups: int = 1

    @property
    def out_side(self):
        return (self.side - 1) // self.stride + 1

    @property
    def name(self):
        groups = "" if self.groups == 1 else "_dw" if self.groups == self.channels else f"_g{self.groups}"
        return f"conv_{self.channels}x{self.side}_{self.filters}_{self.window}x{self.window}_{self.stride}{groups}"

    @property
    def flops(self):
        return 2 * self.filters * self.out_side**2 * self.channels // self.groups * self.window**2

    def model(self):
        attributes = {"kernel_shape": [self.window] * 2, "strides": [self.stride] * 2, "pads": [self.window // 2] * 4, "group": self.groups}
        node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
        inputs = [tensor("x", 1, self.channels, self.side, self.side), tensor("w", self.filters, self.channels // self.groups, self.window, self.window)]
        return model([node], inputs, [tensor("y", 1, self.filters, self.out_side, self.out_side)], ["w"])


# The 23 different convolutions of ResNet-50, in the order of their first occurrence.
RESNET50 = (
    Convolution(3, 224, 64, 7, 2),
    Convolution(64, 56, 64, 1),
    Convolution(64, 56, 64, 3),
    Convolution(64, 56, 256, 1),
    Convolution(256, 56, 64, 1),
    Convolution(256, 56, 128, 1),
    Convolution(128, 56, 128, 3, 2),
    Convolution(128, 28, 512, 1),
    Convolution(256, 56, 512, 1, 2),
    Convolution(512, 28, 128, 1),
    Convolution(128, 28, 128, 3),
    Convolution(512, 28, 256, 1),
    Convolution(256, 28, 256, 3, 2),
    Convolution(256, 14, 1024, 1),
    Convolution(512, 28, 1024, 1, 2),
    Convolution(1024, 14, 256, 1),
    Convolution(256, 14, 256, 3),
    Convolution(1024, 14, 512, 1),
    Convolution(512, 14, 512, 3, 2),
    Convolution(512, 7, 2048, 1),
    Convolution(1024, 14, 2048, 1, 2),
    Convolution(2048, 7, 512, 1),
    Convolution(512, 7, 512, 3),
)
DEPTHWISE = (
    Convolution(128, 56, 128, 3, 1, 128),
    Convolution(512, 28, 512, 3, 1, 512),
    Convolution(144, 56, 144, 3, 2, 144),
    Convolution(240, 28, 240, 5, 1, 240),
    Convolution(672, 14, 672, 5, 2, 672),
)
# Convolutions of EfficientNet-B0 and MobileNetV3 whose number of filters is no multiple of 32.
UNEVEN = (
    Convolution(96, 56, 24, 1),
    Convolution(144, 28, 40, 1),
    Convolution(240, 14, 80, 1),
    Convolution(480, 14, 112, 1),
    Convolution(112, 14, 112, 3),
    Convolution(72, 7, 72, 3),
)
# Convolutions of ResNeXt-50 with 32 groups of 4 to 32 channels.
GROUPED = (
    Convolution(128, 56, 128, 3, 1, 32),
    Convolution(256, 28, 256, 3, 1, 32),
    Convolution(512, 14, 512, 3, 1, 32),
    Convolution(1024, 7, 1024, 3, 1, 32),
    Convolution(256, 56, 256, 3, 2, 32),
)
CONVOLUTIONS = {one.name: one for one in (*RESNET50, *UNEVEN, *GROUPED, *DEPTHWISE)}

# (depth, columns) of the weights of BERT base and of LLaMA-7B.
WEIGHTS = ((768, 768), (768, 3072), (3072, 768), (4096, 4096), (4096, 11008), (11008, 4096))
ROWS = (1, 8, 16, 32, 128)
# Products in bf16: the numbers of rows that multiply each of WEIGHTS, and the sides of square products.
HALF_ROWS, HALF_SIDES = (1, 16, 128), (512, 1024, 2048)
# Rows, depth and columns of linear layers with a transposed weight, as PyTorch has them, whose columns are no multiple
# of 32: classifiers of images, 196 patches and a class token, the vocabulary of GPT-2.
LAYERS = ((1, 2048, 1000), (16, 2048, 1000), (128, 1280, 1000), (64, 768, 197), (8, 768, 50257))
HEADS, HEAD_SIZE = 12, 64
TOKENS = (512, 2048, 8192)


def product(rows, depth, columns, constant_weight=True, dtype=TensorProto.FLOAT):
    """Returns a function that makes the model of a product of two matrices; operands and result have the type `dtype`."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    shapes = {"x": (rows, depth), "w": (depth, columns), "y": (rows, columns)}
    x, w, y = (tensor(name, *shape, dtype=dtype) for name, shape in shapes.items())
    return lambda: model([node], [x, w], [y], ["w"] if constant_weight else [])


def layer(rows, depth, columns):
    node = helper.make_node("Gemm", ["x", "w", "bias"], ["y"], transB=1)
    inputs = [tensor("x", rows, depth), tensor("w", columns, depth), tensor("bias", columns)]
    return lambda: model([node], inputs, [tensor("y", rows, columns)], ["w", "bias"])


def linear_gelu(rows, depth, columns):
    nodes, constants = workloads.added_bias_gelu("p")
    nodes.insert(0, helper.make_node("MatMul", ["x", "w"], ["p"]))
    inputs = [tensor("x", rows, depth), tensor("w", depth, columns), tensor("bias", columns)]
    return lambda: model(nodes, inputs, [tensor("y", rows, columns)], ["w", "bias"], constants)


def attention(tokens, causal):
    """Attention in primitive ops. The causal mask is computed from positions, as exporters write it for a known number of tokens."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["masked" if causal else "scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    constants = [scalar("scale", 1 / math.sqrt(HEAD_SIZE))]
    if causal:
        nodes[3:3] = [
            helper.make_node("Range", ["zero", "tokens", "step"], ["position"]),
            helper.make_node("Unsqueeze", ["position", "last"], ["row"]),
            helper.make_node("LessOrEqual", ["position", "row"], ["seen"]),
            helper.make_node("Where", ["seen", "scaled", "never"], ["masked"]),
        ]
        constants += [constant(name, np.int64(value)) for name, value in (("zero", 0), ("tokens", tokens), ("step", 1))]
        constants += [constant("last", np.array([1])), scalar("never", -1e9)]
    shape = (1, HEADS, tokens, HEAD_SIZE)
    return lambda: workloads.model(nodes, [tensor(name, *shape) for name in "qkv"], [tensor("y", *shape)], constants)


def attention_workload(tokens, causal):
    """Attention. Its limit is the time of two products and of one exponential for each score; causal attention has half as many scores."""
    name, title = ("causal", "causal attention") if causal else ("attention", "attention")
    scores = HEADS * tokens**2 // (2 if causal else 1)
    work = {"flops": 4 * scores * HEAD_SIZE, "elementary": {"exp": scores}}
    return Workload(f"{name}_{tokens}", f"{title}, {tokens} tokens", attention(tokens, causal), "fma", **work)


def halves_workload(name, title, rows, depth, columns, constant_weight):
    """A product in bf16, and the same model in f32 for frameworks that compute f32 models in bf16."""
    bf16, f32 = (product(rows, depth, columns, constant_weight, dtype) for dtype in (TensorProto.BFLOAT16, TensorProto.FLOAT))
    return Workload(name, title, bf16, "read" if rows == 1 else "bf16", flops=2 * rows * depth * columns, build_peer=f32)


PRODUCTS = (
    *(Workload(f"sgemm_{n}", f"SGEMM {n}x{n}x{n}", workloads.sgemm(n), "fma", flops=2 * n**3) for n in (512, 1024, 2048)),
    *(
        Workload(f"linear_{m}x{k}x{n}", f"{m} rows times {k}x{n}", product(m, k, n), "read" if m == 1 else "fma", flops=2 * m * k * n)
        for k, n in WEIGHTS
        for m in ROWS
    ),
    *(halves_workload(f"halves_{n}", f"bf16 {n}x{n}x{n}", n, n, n, False) for n in HALF_SIDES),
    *(halves_workload(f"halves_{m}x{k}x{n}", f"bf16, {m} rows times {k}x{n}", m, k, n, True) for k, n in WEIGHTS for m in HALF_ROWS),
    *(
        Workload(f"layer_{m}x{k}x{n}", f"{m} rows times {k}x{n}, plus a bias", layer(m, k, n), "read" if m == 1 else "fma", flops=2 * m * k * n)
        for m, k, n in LAYERS
    ),
    Workload("linear_512x768x3072", "512 rows times 768x3072", product(512, 768, 3072), "fma", flops=2 * 512 * 768 * 3072),
    Workload("linear_gelu_512x768x3072", "the same + bias + GELU(erf)", linear_gelu(512, 768, 3072), "fma", flops=2 * 512 * 768 * 3072),
    *(Workload(one.name, f"convolution {one.name[5:]}", one.model, "fma", flops=one.flops) for one in (*RESNET50, *UNEVEN, *GROUPED)),
    *(Workload(one.name, f"depthwise {one.channels}x{one.side}x{one.side}, {one.window}x{one.window}", one.model, "copy", flops=one.flops) for one in DEPTHWISE),
    *(attention_workload(s, False) for s in TOKENS),
    *(attention_workload(s, True) for s in TOKENS[:2]),
)


def torch_functions():
    import torch.nn.functional as F

    def convolution(one):
        return lambda w, x: F.conv2d(x, w.w, stride=one.stride, padding=one.window // 2, groups=one.groups)

    def function(name):
        kind = name.split("_")[0]
        if name.startswith("linear_gelu"):
            return lambda w, x: F.gelu(x @ w.w + w.bias)
        if kind == "conv":
            return convolution(CONVOLUTIONS[name])
        return {
            "sgemm": lambda _, a, b: a @ b,
            "linear": lambda w, x: x @ w.w,
            "halves": (lambda w, x: x @ w.w) if "x" in name else lambda _, a, b: a @ b,
            "layer": lambda w, x: F.linear(x, w.w, w.bias),
            "attention": lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v),
            "causal": lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        }[kind]

    return {workload.name: function(workload.name) for workload in PRODUCTS}


def jax_functions(w):
    import jax
    import jax.numpy as jnp

    def convolution(one):
        pad = [(one.window // 2,) * 2] * 2
        return lambda x: jax.lax.conv_general_dilated(x, w["w"], (one.stride,) * 2, pad, feature_group_count=one.groups)

    def attention(q, k, v, causal):
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(HEAD_SIZE)
        if causal:
            scores = jnp.where(jnp.tri(scores.shape[-1], dtype=bool), scores, -1e9)
        return jax.nn.softmax(scores) @ v

    def function(name):
        kind = name.split("_")[0]
        if name.startswith("linear_gelu"):
            return lambda x: jax.nn.gelu(x @ w["w"] + w["bias"], approximate=False)
        if kind == "conv":
            return convolution(CONVOLUTIONS[name])
        return {
            "sgemm": lambda a, b: jnp.matmul(a, b),
            "linear": lambda x: x @ w["w"],
            "halves": (lambda x: x @ w["w"]) if "x" in name else jnp.matmul,
            "layer": lambda x: x @ w["w"].T + w["bias"],
            "attention": lambda q, k, v: attention(q, k, v, False),
            "causal": lambda q, k, v: attention(q, k, v, True),
        }[kind]

    return {workload.name: function(workload.name) for workload in PRODUCTS}
