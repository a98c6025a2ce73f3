"""The PyTorch backend torch.compile(model, backend="warploom"), and a report of which operators became kernels."""

from ._backend import backend, report

__all__ = ["backend", "report"]
