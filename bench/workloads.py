"""The workloads of the benchmarks: fp32 but for some products, static shapes, one ONNX file each.

A workload's `bytes` are the bytes that a perfect single kernel moves: every input read once, every output written
once. Its figure is the time of a copy of as many bytes, or of its multiply-adds or elementary functions at the
machine's peak, divided by the measured time. To add one, append it to WORKLOADS, and add the form of each framework
to peers.py. parts.py has the parts of models, products.py products alone, and peers.py finds all of them by name.
"""

import dataclasses
import json
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPSET = 18


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    build: object  # function without arguments that returns the onnx.ModelProto to tune
    limit: str  # what bounds the workload: "copy", "read" (if little is written), or multiply-adds of f32 ("fma") or bf16
    # Numbers of calls of "exp" and "erf", by name. They are the limit of the workload if they take longer than what `limit` names.
    elementary: dict = dataclasses.field(default_factory=dict)
    flops: int = 0  # number of multiplications and additions (each counts as one); contractions only
    build_peer: object = None  # function that returns the onnx.ModelProto in the form that suits ONNX runtimes best; None: that of `build`

    def model(self, peer=False):
        return self.build_peer() if peer and self.build_peer else self.build()


def tensor(name, *shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def integers(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def scalar(name, value):
    return constant(name, np.float32(value))


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "workload", inputs, outputs, list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    made = onnx.shape_inference.infer_shapes(made, strict_mode=True)
    onnx.checker.check_model(made)
    return made


def softmax(op, rows, columns):
    node = helper.make_node(op, ["x"], ["y"], axis=-1)
    return lambda: model([node], [tensor("x", rows, columns)], [tensor("y", rows, columns)])


def residual_layer_norm(rows, columns):
    nodes = [
        helper.make_node("Add", ["x", "r"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "scale", "shift"], ["y"], axis=-1, epsilon=1e-5),
    ]
    inputs = [tensor("x", rows, columns), tensor("r", rows, columns), tensor("scale", columns), tensor("shift", columns)]
    return lambda: model(nodes, inputs, [tensor("y", rows, columns)])


def added_bias_gelu(x):
    """Returns the nodes and constants of y = GELU(x + bias) by erf, as exporters write them."""
    nodes = [
        helper.make_node("Add", [x, "bias"], ["a"]),
        helper.make_node("Div", ["a", "sqrt2"], ["b"]),
        helper.make_node("Erf", ["b"], ["c"]),
        helper.make_node("Add", ["c", "one"], ["d"]),
        helper.make_node("Mul", ["a", "d"], ["e"]),
        helper.make_node("Mul", ["e", "half"], ["y"]),
    ]
    return nodes, [scalar("sqrt2", math.sqrt(2)), scalar("one", 1), scalar("half", 0.5)]


def bias_gelu(rows, columns):
    nodes, constants = added_bias_gelu("x")
    inputs = [tensor("x", rows, columns), tensor("bias", columns)]
    return lambda: model(nodes, inputs, [tensor("y", rows, columns)], constants)


def group_norm_silu(batch, channels, height, width, groups, instance_norm):
    """Group norm in primitive ops, or as exporters write it for runtimes that have a kernel for instance norm."""
    shape, grouped = (batch, channels, height, width), (batch, groups, channels // groups * height * width)
    nodes = [helper.make_node("Reshape", ["x", "grouped"], ["g"])]
    constants = [constant("grouped", np.array(grouped)), constant("shape", np.array(shape))]
    if instance_norm:
        nodes.append(helper.make_node("InstanceNormalization", ["g", "ones", "zeros"], ["n"], epsilon=1e-5))
        constants += [constant("ones", np.ones(groups, np.float32)), constant("zeros", np.zeros(groups, np.float32))]
    else:
        nodes += [
            helper.make_node("ReduceMean", ["g", "axes"], ["mean"], keepdims=1),
            helper.make_node("Sub", ["g", "mean"], ["centred"]),
            helper.make_node("Mul", ["centred", "centred"], ["square"]),
            helper.make_node("ReduceMean", ["square", "axes"], ["variance"], keepdims=1),
            helper.make_node("Add", ["variance", "epsilon"], ["above"]),
            helper.make_node("Sqrt", ["above"], ["deviation"]),
            helper.make_node("Div", ["centred", "deviation"], ["n"]),
        ]
        constants += [constant("axes", np.array([2])), scalar("epsilon", 1e-5)]
    nodes += [
        helper.make_node("Reshape", ["n", "shape"], ["m"]),
        helper.make_node("Mul", ["m", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "shift"], ["z"]),
        helper.make_node("Sigmoid", ["z"], ["s"]),
        helper.make_node("Mul", ["z", "s"], ["y"]),
    ]
    inputs = [tensor("x", *shape), tensor("scale", channels, 1, 1), tensor("shift", channels, 1, 1)]
    return lambda: model(nodes, inputs, [tensor("y", *shape)], constants)


def transpose_add(n):
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Add", ["t", "z"], ["y"])]
    return lambda: model(nodes, [tensor("x", n, n), tensor("z", n, n)], [tensor("y", n, n)])


def sgemm(n):
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    return lambda: model([node], [tensor("a", n, n), tensor("b", n, n)], [tensor("y", n, n)])


def from_file(name):
    return lambda: onnx.load(ROOT / "tests" / "data" / name)


GROUP_NORM = (8, 320, 64, 64, 32)  # batch, channels, height, width, groups; a call reads 42 MB and writes 42 MB
BERT_FLOPS = 2 * 512 * (4 * 768 * 768 + 2 * 512 * 768 + 2 * 768 * 3072)

WORKLOADS = (
    Workload("softmax", "softmax 65536x1024", softmax("Softmax", 65536, 1024), "copy"),
    Workload("log_softmax", "log-softmax 2048x32000", softmax("LogSoftmax", 2048, 32000), "copy"),
    Workload("layer_norm", "residual + layer norm 16384x1024", residual_layer_norm(16384, 1024), "copy"),
    Workload("layer_norm_cached", "residual + layer norm 512x768", residual_layer_norm(512, 768), "copy"),
    Workload("bias_gelu", "bias + GELU(erf) 16384x3072", bias_gelu(16384, 3072), "copy", {"erf": 16384 * 3072}),
    Workload(
        "group_norm_silu",
        "group norm(32) + SiLU 8x320x64x64",
        group_norm_silu(*GROUP_NORM, instance_norm=False),
        "copy",
        build_peer=group_norm_silu(*GROUP_NORM, instance_norm=True),
    ),
    Workload("transpose_add", "transpose + add 4096x4096", transpose_add(4096), "copy"),
    Workload("sgemm", "SGEMM 1024x1024x1024", sgemm(1024), "fma", flops=2 * 1024**3),
    Workload("bert_layer", "BERT base layer, 512 tokens", from_file("bert_base_layer_b1_s512.onnx"), "fma", flops=BERT_FLOPS),
)


def shapes(values):
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}


def dtypes(values):
    return {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in values}


def moved_bytes(made):
    """Returns the bytes of all inputs and outputs of a model, each counted once."""
    values = [*made.graph.input, *made.graph.output]
    sizes, kinds = shapes(values), dtypes(values)
    return sum(kinds[name].itemsize * math.prod(shape) for name, shape in sizes.items())


def weight_names(made):
    names = {entry.key: entry.value for entry in made.metadata_props}.get("warploom.weights", "")
    return [name for name in names.split(",") if name]


def make_inputs(made, seed=7):
    """Returns normally distributed data for every input, by name; weights are distributed as the file's statistics say, and integers are
    below 1000. Every process gets the same data."""
    stats = json.loads({e.key: e.value for e in made.metadata_props}.get("warploom.weight_stats", "{}"))
    inputs, kinds = {}, dtypes(made.graph.input)
    for position, (name, shape) in enumerate(shapes(made.graph.input).items()):
        mean, deviation = stats.get(name, (0.0, 1.0))
        generator = np.random.default_rng((seed, position))
        if kinds[name].kind == "i":
            inputs[name] = generator.integers(0, 1000, shape, kinds[name])
            continue
        normal = generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation) + np.float32(mean)
        inputs[name] = normal.astype(kinds[name])
    return inputs


def sample(output, count=1000):
    """Returns values at fixed places of an output, to compare the results of the peers."""
    flat = np.ascontiguousarray(output).reshape(-1)
    places = np.random.default_rng(3).integers(0, flat.size, count)
    return flat[places].astype(np.float64)
