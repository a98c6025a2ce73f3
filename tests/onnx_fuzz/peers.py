"""Computes a model's results by the peers: the reference implementation of the onnx package, and onnxruntime."""

import warnings

import ml_dtypes
import numpy as np
import onnxruntime
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)


def by_reference(model, arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [None if v is None or isinstance(v, (list, dict)) else np.asarray(v) for v in ReferenceEvaluator(model).run(None, dict(arrays))]


def by_onnxruntime(model, arrays):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: arrays[i.name] for i in session.get_inputs()})


PEERS = {"onnx": by_reference, "onnxruntime": by_onnxruntime}
# Element types that NumPy itself lacks. Arrays of them cannot be passed to onnxruntime.
NOT_OF_NUMPY = {np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4)}


def answers(model, arrays):
    """Returns the outputs of each peer that computes the model, and the reasons why other peers do not."""
    found, refused = {}, {}
    for name, run in PEERS.items():
        if name == "onnxruntime" and any(a.dtype in NOT_OF_NUMPY for a in arrays.values()):
            refused[name] = "type"
            continue
        try:
            found[name] = run(model, arrays)
        except Exception as error:  # noqa: BLE001
            refused[name] = f"{type(error).__name__}: {str(error)[:200]}"
    return found, refused
