"""The kernels of a part of a graph, as a module."""

import operator
import threading

import torch

from .. import _core
from .._model import Executors, maker_of

_ADDRESS, _CONTIGUOUS = torch.Tensor.data_ptr, torch.Tensor.contiguous
_VERSION = operator.attrgetter("_version")


def picker(places):
    """A function that picks what is at these places of a tuple: a tuple, also of one."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda given: tuple(given[place] for place in places)


class Kernels(torch.nn.Module):
    """The kernels of a part of a graph, in place of its nodes."""

    def __init__(self, folder, used, static):
        super().__init__()
        self._model = _core.Model(str(folder))
        self._executors = Executors(self._model, threads=torch.get_num_threads())
        # `used`: the arguments that the text has as inputs, "i0" the first of them. Those in `static` are weights.
        self._inputs = picker([used[int(tensor.name[1:])] for tensor in self._model.inputs()])
        weights = {tensor.name: tensor.nbytes for tensor in self._model.weights()}
        taken = [(f"i{n}", argument) for n, argument in enumerate(used) if argument in static and f"i{n}" in weights]
        # Small ones first: a large one that is multiplied with a small one is not kept until that is there.
        taken.sort(key=lambda weight: weights[weight[0]])
        self._names, self._weights = [name for name, _ in taken], picker([argument for _, argument in taken])
        self._outputs = [maker_of(tensor) for tensor in self._model.outputs()]
        self.weights = len(taken)
        self._lock, self._known = threading.Lock(), []

    def _set_weights(self, arguments):
        """Copies all weights if the values of any have changed: what is computed from several needs all of them."""
        tensors = self._weights(arguments)
        now = [*map(_ADDRESS, tensors), *map(_VERSION, tensors)]
        if self._known == now:
            return
        for name, tensor in zip(self._names, tensors, strict=True):
            self._model.set_weight(name, tensor.detach().contiguous())
        self._known = now

    def forward(self, *arguments):
        with self._lock:
            self._set_weights(arguments)
        results = [make() for make in self._outputs]
        given = [*map(_CONTIGUOUS, self._inputs(arguments))]  # which keeps copies until the run has ended
        # Guards of the compiled graph have checked shapes and types.
        self._executors.run_at(0, [*map(_ADDRESS, given)], [*map(_ADDRESS, results)])
        return results[0] if len(results) == 1 else tuple(results)
