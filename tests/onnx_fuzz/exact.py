"""Further ways to compute a model of one node, for results that differ from both peers: formulas of the standard in doubles, the reference
implementation with all floats widened to doubles, and onnxruntime in f32 for types that it does not support."""

import io

import numpy as np
import onnx
from onnx import helper, numpy_helper

import peers
import values
from formulas import FORMULAS, WIDER, Node


def retyped(model, arrays, types, to):
    """Returns the model and its inputs with floats of `types` converted to the type `to`."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        kind = value.type.tensor_type
        if helper.tensor_dtype_to_np_dtype(kind.elem_type) in types:
            kind.elem_type = helper.np_dtype_to_tensor_dtype(to)
    for weight in made.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype in types:
            weight.CopyFrom(numpy_helper.from_array(array.astype(to), weight.name))
    return made, {name: a.astype(to) if a.dtype in types else a for name, a in arrays.items()}


def answers(stored, arrays, dtypes):
    """Yields (name, outputs, rounding) for each way, where `rounding` is the type to which the outputs were rounded, or None. `dtypes`:
    types of the outputs."""
    model = onnx.load(io.BytesIO(stored))
    operator = model.graph.node[0].op_type
    with np.errstate(all="ignore"):
        if operator in FORMULAS:
            try:
                made = FORMULAS[operator](Node(model, arrays), dtypes)
            except (ValueError, IndexError, TypeError, OverflowError):  # the formula does not cover this node
                made = None
            for one in made if isinstance(made, list) else [made]:
                if one is not None:
                    yield "formula", [np.asarray(output) for output in (one if isinstance(one, tuple) else (one,))], None
        wide = retyped(model, arrays, values.FLOATS - {WIDER}, WIDER)
        for name, run, how, kind in (
            ("onnx in doubles", peers.by_reference, wide, None),
            ("onnxruntime in f32", peers.by_onnxruntime, retyped(model, arrays, values.FLOATS - {np.dtype(np.float32)}, np.dtype(np.float32)), np.float32),
        ):
            try:
                yield name, run(*how), kind
            except Exception:  # noqa: BLE001, S110: the peer cannot compute this model
                pass
