"""The class Kernels: a module that runs the kernels of a part of a graph."""

import functools
import operator
import threading
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _core
from .._model import Executors, owns

_ADDRESS = torch.Tensor.data_ptr


def picker(places):
    """Returns a function that picks the elements of a tuple at these indices, always as a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda given: tuple(given[place] for place in places)


def _reader(order):
    """Returns a function that permutes a tensor's axes to this order and makes it contiguous, with a copy only if needed."""
    if order == list(range(len(order))):
        return torch.Tensor.contiguous
    return lambda tensor: tensor.permute(order).contiguous()


def _maker(result):
    """Returns a function that allocates the memory of a result at each call, at an address that is a multiple of 64."""
    if result.order is None:  # if strides are 0 or leave gaps, kernels write a dense array, which _spread() copies to an array with these strides
        return functools.partial(torch.empty, result.shape, dtype=result.dtype)
    return functools.partial(torch.empty_strided, result.shape, result.stride, dtype=result.dtype)


def _spread(result, dense):
    """Returns a result with gaps or strides of 0, as a copy of a dense one."""
    made = torch.empty_strided(result.shape, result.stride, dtype=result.dtype)
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in result.stride)
    made[once].copy_(dense[once])
    return made


class _Loaded:
    """A loaded model with its own copies of one set of weights, and the mark (hash) of the weights that were copied."""

    def __init__(self, folder, weights, threads):
        owns(self)
        self.model = _core.Model(folder)
        self.executors = Executors(self.model, threads=threads)
        self.mark = None
        self._storages = [StorageWeakRef(weight.untyped_storage()) for weight in weights]
        self.tensors = [(weakref.ref(weight), weight.dtype, weight.shape) for weight in weights]

    def found(self):
        """Returns the weights as they lie now; None if one is gone, or has another type, shape or place."""
        given = [(ref(), dtype, shape) for ref, dtype, shape in self.tensors]
        lying = [tensor.detach() for tensor, _, _ in given if tensor is not None]
        fits = len(lying) == len(given) and all(
            one.dtype == dtype and one.shape == shape and one.device.type == "cpu" for one, (_, dtype, shape) in zip(lying, given)
        )
        return lying if fits else None

    def is_left(self):
        """Whether PyTorch has freed a weight of which this model has a copy."""
        return any(storage.expired() for storage in self._storages)


class Kernels(torch.nn.Module):
    """A module that runs the kernels of a part of a graph, in place of the part's nodes."""

    def __init__(self, folder, part, static, threads):
        """folder: the bundle. part: the Text of the part. static: indices of the arguments that are weights. threads: how many threads run
        the kernels."""
        super().__init__()
        self._part, self._static = part, static
        self._folder, self._threads, self._lock, self._loaded = str(folder), threads, threading.Lock(), {}
        first = _Loaded(self._folder, (), threads)
        first.executors.prepare()
        weights = {tensor.name: tensor.nbytes for tensor in first.model.weights()}
        # The input "iN" of the graph's text is the argument with the index part.used[N]. An argument in `static` is
        # a weight of the model; it is set as a weight of the bundle if the bundle has one of that name.
        readers = [_reader(order) for order in part.orders]
        inputs = [int(tensor.name[1:]) for tensor in first.model.inputs()]
        self._inputs, self._readers = picker([part.used[n] for n in inputs]), [readers[n] for n in inputs]
        taken = [n for n, argument in enumerate(part.used) if argument in static and f"i{n}" in weights]
        # Weights are set from small to large, since the model keeps copies of a folded weight's operands until it has all of them.
        taken.sort(key=lambda n: weights[f"i{n}"])
        self._names, self._weights = [f"i{n}" for n in taken], picker([part.used[n] for n in taken])
        self._weight_readers, self._bytes = [readers[n] for n in taken], [weights[name] for name in self._names]
        self._outputs = [_maker(result) for result in part.results]
        self._spread = [(i, result) for i, result in enumerate(part.results) if result.order is None]
        self.weights = len(taken)
        if not taken:
            self._loaded[()] = first

    def prepare_like(self, others):
        """Copies the weights that other kernels of the same part have, so that the first call need not."""
        for where, loaded in list(others._loaded.items()):
            # The tensors are read on a thread of the background, while the program may replace them or write to them.
            lying = loaded.found()
            if not lying or tuple(map(_ADDRESS, lying)) != where:
                continue
            tensors = dict(zip(others._names, zip(lying, [ref() for ref, _, _ in loaded.tensors])))
            if any(name not in tensors or tensors[name][1] is None for name in self._names):
                continue
            own = [tensors[name][0] for name in self._names]
            made = self._with_weights([tensors[name][1] for name in self._names], own)
            if self._lying(own)[1] != made.mark:
                made.mark = None  # somebody wrote meanwhile, so the next call copies the weights again

    def _lying(self, detached):
        """Returns weights in the order of axes that the kernels read, and the mark of their bytes."""
        lying = [read(tensor) for read, tensor in zip(self._weight_readers, detached)]
        return lying, _core.mark([*map(_ADDRESS, lying)], self._bytes, self._threads)

    def _with_weights(self, tensors, detached=None):
        """Returns the kernels with these weights. If the bytes of any weight have changed, all weights are copied again, because folded
        weights are computed from several of them. Tensor versions cannot be used: `.data` and NumPy write without a new version."""
        where = tuple(map(_ADDRESS, tensors))
        detached = [tensor.detach() for tensor in tensors] if detached is None else detached
        lying, mark = self._lying(detached)
        with self._lock:
            loaded = self._loaded.get(where)
            if loaded is None:
                self._loaded = {key: one for key, one in self._loaded.items() if not one.is_left()}
                loaded = self._loaded[where] = _Loaded(self._folder, tensors, self._threads)
            if loaded.mark != mark:
                for name, weight in zip(self._names, lying, strict=True):
                    loaded.model.set_weight(name, weight)
                loaded.mark = mark
        return loaded

    def forward(self, *arguments):
        loaded = self._with_weights(self._weights(arguments)) if self.weights else self._loaded[()]
        results = [make() for make in self._outputs]
        # The guards of the compiled graph have already checked shapes and dtypes. `given` keeps copied arguments alive until the run has
        # ended.
        given = [read(tensor) for read, tensor in zip(self._readers, self._inputs(arguments))]
        loaded.executors.run_at(0, [*map(_ADDRESS, given)], [*map(_ADDRESS, results)])
        for i, result in self._spread:
            results[i] = _spread(result, results[i])
        return results[0] if len(results) == 1 else tuple(results)
