"""PyTorch: torch.compile(model, backend="warploom"), and a report of what it took."""

from ._backend import backend, report

__all__ = ["backend", "report"]
