"""Finds, verifies and runs the fastest fused kernels for tensor programs.

    import warploom

    model = warploom.tune("model.onnx", trials=64)   # or warploom.load("tuned"), a bundle that was made before
    y = model(x)                                     # NumPy arrays or PyTorch tensors, on the CPU
    model.report                                     # a table and a page in a notebook

    team = warploom.Client("kernels.lab:7411")       # a coordinator: tune, get, jobs, records, workers, watch, cancel
"""

from ._core import Error, OutsideError, version as _version
from ._client import Client
from ._model import Model, load
from ._program import ProgramError
from ._report import Report
from ._tune import tune

__version__ = _version()
__all__ = ["Client", "Error", "Model", "OutsideError", "ProgramError", "Report", "load", "tune"]
