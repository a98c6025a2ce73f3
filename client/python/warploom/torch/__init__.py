"""The PyTorch backend torch.compile(model, backend="warploom"), and a report of which operators became kernels."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ImportError(f"warploom.torch needs PyTorch 2.6 or newer, which this Python does not have (pip install torch): {missing}") from missing

from ._backend import backend, report
from ._background import wait

__all__ = ["backend", "report", "wait"]
