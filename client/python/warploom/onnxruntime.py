"""Runs bundles in sessions of onnxruntime, as nodes of ONNX graphs. Needs the packages onnx and onnxruntime (1.16 or newer).

    session = warploom.onnxruntime.session("tuned", weights="model.onnx")
    y = session.run(None, {"x": x})

In a larger ONNX model, `node()` replaces the part that was tuned; its sessions need register(options).
"""

import pathlib

import onnxruntime
from onnx import TensorProto, helper

from ._model import load

DOMAIN = "warploom"
_TYPES = {
    "f64": TensorProto.DOUBLE, "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "i64": TensorProto.INT64,
    "i32": TensorProto.INT32, "i16": TensorProto.INT16, "i8": TensorProto.INT8, "u64": TensorProto.UINT64, "u32": TensorProto.UINT32,
    "u16": TensorProto.UINT16, "u8": TensorProto.UINT8, "b1": TensorProto.BOOL, "f8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "f8e5m2": TensorProto.FLOAT8E5M2,
}  # fmt: skip


def library():
    """Returns the path of the library of custom operators, for SessionOptions.register_custom_ops_library()."""
    return str(pathlib.Path(__file__).parent / "lib" / "libwarploom-onnxruntime.so")


def register(options):
    """Registers the custom operator in SessionOptions, so that their sessions can run nodes of bundles. Returns the options."""
    options.register_custom_ops_library(library())
    return options


def node(bundle, inputs, outputs, *, weights=None, threads=0, name=""):
    """Returns an onnx.NodeProto that runs the bundle in a folder. inputs, outputs: names of ONNX values, in the bundle's order. weights: a
    file with the values of its weights, as warploom.Model.load_weights() reads it. threads: limit of threads; 0: as many as the kernels
    were tuned with. The ONNX graph must state the types of all `outputs`, among its outputs or in value_info."""
    attributes = {"bundle": str(pathlib.Path(bundle).absolute()), "threads": threads}
    if weights is not None:
        attributes["weights"] = str(pathlib.Path(weights).absolute())
    return helper.make_node("Bundle", inputs, outputs, domain=DOMAIN, name=name, **attributes)


def _infos(by_size):
    """Returns ONNX value infos for the tensors, which are given for every size; extents that differ between sizes are left open."""
    return [
        helper.make_tensor_value_info(
            each[0].name, _TYPES[each[0].dtype], [extents[0] if len(set(extents)) == 1 else None for extents in zip(*(t.shape for t in each))]
        )
        for each in zip(*by_size)
    ]


def model(bundle, *, weights=None, threads=0):
    """Returns an onnx.ModelProto of one node, which runs the bundle."""
    tuned = load(bundle)
    sizes = range(len(tuned.sizes))
    inputs, outputs = _infos([tuned.inputs(size) for size in sizes]), _infos([tuned.outputs(size) for size in sizes])
    made = node(bundle, [i.name for i in inputs], [o.name for o in outputs], weights=weights, threads=threads)
    graph = helper.make_graph([made], "bundle", inputs, outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def session(bundle, *, weights=None, threads=0, options=None):
    """Returns an onnxruntime.InferenceSession that runs the bundle in a folder."""
    made = model(bundle, weights=weights, threads=threads).SerializeToString()
    return onnxruntime.InferenceSession(made, register(options or onnxruntime.SessionOptions()), providers=["CPUExecutionProvider"])
