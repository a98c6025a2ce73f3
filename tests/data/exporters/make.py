#!/usr/bin/env python3
"""Writes the files beside it: one BERT layer (post-norm, hidden 768, 12 heads, erf GELU, 512 tokens, batch 1,
additive mask) as different exporters write it. Needs torch, onnxscript and onnx; the committed files are from torch
2.15, onnxscript 0.7 and onnx 1.23.

    torchscript_13, torchscript_17    torch.onnx.export(dynamo=False): LayerNormalization decomposed; fused
    dynamo_18, dynamo_20              torch.onnx.export(dynamo=True): GELU decomposed; fused
    decomposed_13, fused_20           written by hand: everything in small steps and other orders; everything fused
    flat_18                           written by hand: [512,768] instead of [1,512,768], Gemm instead of MatMul and
    Add

Weights are stripped: every initializer above 1 KiB becomes an input of its name, listed in metadata
"warploom.weights". All files store weights as [in,out]. A transposed weight would be another access, and so rightly
another key.
"""

import math
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
TOKENS, WIDTH, HEADS, INNER = 512, 768, 12, 3072
EPSILON = 1e-12


def strip(model):
    graph, names, kept = model.graph, [], []
    for tensor in graph.initializer:
        if int(np.prod(tensor.dims)) * 4 <= 1024:
            kept.append(tensor)
            continue
        names.append(tensor.name)
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.value_info[:]
    del model.metadata_props[:]
    model.doc_string = graph.doc_string = ""
    for node in graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in [*graph.input, *graph.output]:
        del value.metadata_props[:]
    for key, text in (("source", "BERT base, one encoder layer"), ("weights", ",".join(names))):
        entry = model.metadata_props.add()
        entry.key, entry.value = f"warploom.{key}", text
    return model


def write(name, model):
    path = HERE / f"{name}.onnx"
    onnx.save_model(strip(model), path)
    print(f"{path.name:24} {path.stat().st_size:6} bytes {len(model.graph.node):4} nodes")


def from_torch():
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            for name in "qkvo":
                setattr(self, name, nn.Linear(WIDTH, WIDTH))
            self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
            self.ln1, self.ln2 = nn.LayerNorm(WIDTH, eps=EPSILON), nn.LayerNorm(WIDTH, eps=EPSILON)
            for norm in (self.ln1, self.ln2):  # equal weights would be interned to one
                nn.init.normal_(norm.weight)
                nn.init.normal_(norm.bias)

        def forward(self, x, mask):
            def heads(t):
                return t.view(t.shape[0], t.shape[1], HEADS, -1).transpose(1, 2)

            q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
            context = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape)
            x = self.ln1(self.o(context) + x)
            return self.ln2(self.down(functional.gelu(self.up(x))) + x)

    torch.manual_seed(0)
    layer = Layer().eval()
    values = (torch.randn(1, TOKENS, WIDTH), torch.zeros(1, 1, 1, TOKENS))
    for name, dynamo, opset in (
        ("torchscript_13", False, 13),
        ("torchscript_17", False, 17),
        ("dynamo_18", True, 18),
        ("dynamo_20", True, 20),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/layer.onnx"
            names = {"input_names": ["x", "mask"], "output_names": ["y"]}
            torch.onnx.export(layer, values, path, dynamo=dynamo, opset_version=opset, **names)
            write(name, onnx.load(path))


class Maker:
    """Builds a graph by hand. Names are numbered, so that every value has its own."""

    def __init__(self, opset, *shape):
        self.opset, self.shape = opset, list(shape)
        self.nodes, self.weights, self.constants = [], [], []

    def op(self, kind, *operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def constant(self, value, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def ints(self, *values):
        return self.constant(values, np.int64)

    def weight(self, name, *shape):
        self.weights.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def model(self, y):
        data = [("x", self.shape), ("mask", [1, 1, 1, TOKENS])]
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in data]
        output = helper.make_tensor_value_info(y, TensorProto.FLOAT, self.shape)
        graph = helper.make_graph(self.nodes, "layer", inputs + self.weights, [output], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def by_hand(m, linear, norm, gelu, scale, softmax, split=(1, TOKENS, HEADS, WIDTH // HEADS)):
    def heads(name, perm):
        value = m.op("Reshape", linear(m, "x", name, WIDTH, WIDTH), m.ints(*split))
        return m.op("Transpose", value, perm=perm)

    v = heads("v", [0, 2, 1, 3])
    k = heads("k", [0, 2, 3, 1])
    q = heads("q", [0, 2, 1, 3])
    scores = m.op("Add", "mask", scale(m, m.op("MatMul", q, k)))
    context = m.op("Transpose", m.op("MatMul", softmax(m, scores), v), perm=[0, 2, 1, 3])
    context = m.op("Reshape", context, m.ints(*m.shape))
    x = norm(m, m.op("Add", "x", linear(m, context, "o", WIDTH, WIDTH)), "ln1")
    y = linear(m, gelu(m, linear(m, x, "up", WIDTH, INNER)), "down", INNER, WIDTH)
    return m.model(norm(m, m.op("Add", y, x), "ln2"))


def linear_matmul(m, x, name, rows, columns):
    product = m.op("MatMul", x, m.weight(f"{name}.w", rows, columns))
    return m.op("Add", m.weight(f"{name}.b", columns), product)


def linear_gemm(m, x, name, rows, columns):
    return m.op("Gemm", x, m.weight(f"{name}.w", rows, columns), m.weight(f"{name}.b", columns))


def norm_fused(m, x, name):
    operands = m.weight(f"{name}.g", WIDTH), m.weight(f"{name}.s", WIDTH)
    return m.op("LayerNormalization", x, *operands, epsilon=EPSILON, axis=-1)


def norm_decomposed(m, x, name):
    """Layer normalisation with means as sums, squares as products, and the reciprocal of the root as a division."""

    def mean(value):
        return m.op("Div", m.op("ReduceSum", value, m.ints(-1), keepdims=1), m.constant(float(WIDTH)))

    centred = m.op("Sub", x, mean(x))
    variance = mean(m.op("Mul", centred, centred))
    root = m.op("Sqrt", m.op("Add", m.constant(EPSILON), variance))
    normal = m.op("Mul", m.op("Div", m.constant(1.0), root), centred)
    return m.op("Add", m.weight(f"{name}.s", WIDTH), m.op("Mul", m.weight(f"{name}.g", WIDTH), normal))


def gelu_decomposed(m, x):
    """GELU in primitive ops: 0.5 x (1 + erf(x * 1/sqrt 2))."""
    erf = m.op("Erf", m.op("Mul", m.constant(math.sqrt(0.5)), x))
    return m.op("Mul", m.op("Mul", m.constant(0.5), x), m.op("Add", m.constant(1.0), erf))


def softmax_decomposed(m, x):
    shifted = m.op("Sub", x, m.op("ReduceMax", x, axes=[-1], keepdims=1))
    exps = m.op("Exp", shifted)
    return m.op("Div", exps, m.op("ReduceSum", exps, m.ints(-1), keepdims=1))


def main():
    size = math.sqrt(WIDTH // HEADS)
    write(
        "decomposed_13",
        by_hand(
            Maker(13, 1, TOKENS, WIDTH),
            linear_matmul,
            norm_decomposed,
            gelu_decomposed,
            lambda m, x: m.op("Mul", m.constant(1 / size), x),
            softmax_decomposed,
        ),
    )
    fused = (
        norm_fused,
        lambda m, x: m.op("Gelu", x),
        lambda m, x: m.op("Div", x, m.constant(size)),
        lambda m, x: m.op("Softmax", x, axis=-1),
    )
    write("fused_20", by_hand(Maker(20, 1, TOKENS, WIDTH), linear_matmul, *fused))
    write(
        "flat_18",
        by_hand(Maker(18, TOKENS, WIDTH), linear_gemm, norm_fused, gelu_decomposed, *fused[2:]),
    )
    from_torch()


if __name__ == "__main__":
    main()
