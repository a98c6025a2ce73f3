"""The kernels of a part of a graph, as a module."""

import functools
import operator
import threading

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _core
from .._model import Executors, owns

_ADDRESS = torch.Tensor.data_ptr


def picker(places):
    """A function that picks what is at these places of a tuple: a tuple, also of one."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda given: tuple(given[place] for place in places)


def _reader(order):
    """A function that makes of a tensor of any strides one whose elements lie side by side, with its axes in this order."""
    if order == list(range(len(order))):
        return torch.Tensor.contiguous
    return lambda tensor: tensor.permute(order).contiguous()


def _maker(result):
    """A function that makes the memory of a result at each call. It begins at a multiple of 64 bytes."""
    if result.order is None:  # what has gaps, or elements that are one, is written from a copy
        return functools.partial(torch.empty, result.shape, dtype=result.dtype)
    return functools.partial(torch.empty_strided, result.shape, result.stride, dtype=result.dtype)


def _spread(result, dense):
    """A result of strides that are not those of elements side by side, from one of those."""
    made = torch.empty_strided(result.shape, result.stride, dtype=result.dtype)
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in result.stride)
    made[once].copy_(dense[once])
    return made


class _Loaded:
    """The kernels with copies of weights of their own, and the mark of what was copied."""

    def __init__(self, folder, weights):
        owns(self)
        self.model = _core.Model(folder)
        self.executors = Executors(self.model, threads=torch.get_num_threads())
        self.mark = None
        self._storages = [StorageWeakRef(weight.untyped_storage()) for weight in weights]

    def is_left(self):
        """Whether a weight that was copied is no more."""
        return any(storage.expired() for storage in self._storages)


class Kernels(torch.nn.Module):
    """The kernels of a part of a graph, in place of its nodes."""

    def __init__(self, folder, part, static):
        """folder: the bundle. part: its Text. static: places of the arguments that are weights."""
        super().__init__()
        self._folder, self._lock, self._loaded = str(folder), threading.Lock(), {}
        first = _Loaded(self._folder, ())
        first.executors.prepare()
        weights = {tensor.name: tensor.nbytes for tensor in first.model.weights()}
        # The inputs of the text are arguments, "i0" the first that is read. Those in `static` are weights.
        readers = [_reader(order) for order in part.orders]
        inputs = [int(tensor.name[1:]) for tensor in first.model.inputs()]
        self._inputs, self._readers = picker([part.used[n] for n in inputs]), [readers[n] for n in inputs]
        taken = [n for n, argument in enumerate(part.used) if argument in static and f"i{n}" in weights]
        # Small ones first: a large one that is multiplied with a small one is not kept until that is there.
        taken.sort(key=lambda n: weights[f"i{n}"])
        self._names, self._weights = [f"i{n}" for n in taken], picker([part.used[n] for n in taken])
        self._weight_readers, self._bytes = [readers[n] for n in taken], [weights[name] for name in self._names]
        self._outputs = [_maker(result) for result in part.results]
        self._spread = [(i, result) for i, result in enumerate(part.results) if result.order is None]
        self.weights = len(taken)
        if not taken:
            self._loaded[()] = first

    def _with_weights(self, arguments):
        """The kernels with the weights of a call. All are copied again if the bytes of any are others: what is computed from
        several needs all of them. Versions of tensors do not tell, since `.data` and NumPy write without a new one."""
        tensors = self._weights(arguments)
        where = tuple(map(_ADDRESS, tensors))
        lying = [read(tensor.detach()) for read, tensor in zip(self._weight_readers, tensors)]
        mark = _core.mark([*map(_ADDRESS, lying)], self._bytes, torch.get_num_threads())
        with self._lock:
            loaded = self._loaded.get(where)
            if loaded is None:
                self._loaded = {key: one for key, one in self._loaded.items() if not one.is_left()}
                loaded = self._loaded[where] = _Loaded(self._folder, tensors)
            if loaded.mark != mark:
                for name, weight in zip(self._names, lying, strict=True):
                    loaded.model.set_weight(name, weight)
                loaded.mark = mark
        return loaded

    def forward(self, *arguments):
        loaded = self._with_weights(arguments) if self.weights else self._loaded[()]
        results = [make() for make in self._outputs]
        # Guards of the compiled graph have checked shapes and types. Copies are kept until the run has ended.
        given = [read(tensor) for read, tensor in zip(self._readers, self._inputs(arguments))]
        loaded.executors.run_at(0, [*map(_ADDRESS, given)], [*map(_ADDRESS, results)])
        for i, result in self._spread:
            results[i] = _spread(result, results[i])
        return results[0] if len(results) == 1 else tuple(results)
