"""Graphs with symbolic extents, which get kernels for each size with which they are called."""

import logging
import threading

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from ._kernels import picker
from ._parts import with_kernels

log = logging.getLogger("warploom")
MOST_SIZES = 16  # largest number of sizes of one graph that get kernels


def dynamic_arguments(graph):
    """Returns the indices of the arguments that are symbolic numbers, or tensors with symbolic extents."""

    def is_dynamic(value):
        return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) or (isinstance(value, torch.Tensor) and not all(isinstance(e, int) for e in value.shape))

    placeholders = (node for node in graph.nodes if node.op == "placeholder")
    return [i for i, node in enumerate(placeholders) if is_dynamic(node.meta.get("val"))]


class ManySizes:
    """Returns a function that computes a graph with symbolic extents: by kernels for each of the first MOST_SIZES sizes with which it is
    called, by eager for other sizes."""

    def __init__(self, gm, dynamic, static, options):
        self._gm, self._dynamic, self._static, self._options = gm, picker(dynamic), static, options
        self._lock, self._known, self._full = threading.Lock(), {}, False

    def _specialised(self, arguments):
        """Returns the graph with the extents of these arguments, traced with fake tensors."""
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        given = [mode.from_tensor(a, static_shapes=True) if isinstance(a, torch.Tensor) else a for a in arguments]
        with torch.no_grad(), mode:
            return make_fx(self._gm)(*given)

    def _made(self, arguments):
        try:
            specialised = self._specialised(arguments)
        except Exception as error:  # noqa: BLE001: for example, an extent that depends on values
            first = (str(error).strip() or "no reason").splitlines()[0]
            log.warning("a graph whose extents vary stays with eager: %s: %s", type(error).__name__, first)
            return self._gm
        return with_kernels(specialised, self._static, self._options)

    def __call__(self, *arguments):
        seen = self._dynamic(arguments)
        size = tuple((*a.shape, *a.stride()) if isinstance(a, torch.Tensor) else a for a in seen)
        made = self._known.get(size)
        if made is None:
            with self._lock:
                made = self._known.get(size)
                if made is None and len(self._known) < MOST_SIZES:
                    made = self._known[size] = self._made(arguments)
            if made is None:
                if not self._full:
                    log.warning("a graph has been called with more than %d sizes; others stay with eager", MOST_SIZES)
                self._full, made = True, self._gm
        return made(*arguments)
