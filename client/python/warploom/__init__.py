"""Finds, verifies and runs the fastest fused kernels for tensor programs.

    import warploom

    model = warploom.tune("model.onnx", trials=64)   # or warploom.load("tuned"), a bundle that was made before
    y = model(x)                                     # NumPy arrays or PyTorch tensors, on the CPU
"""

from ._core import Error, version as _version
from ._model import Model, load
from ._tune import TuneError, tune

__version__ = _version()
__all__ = ["Error", "Model", "TuneError", "load", "tune"]
