"""torch.compile(model, backend="warploom")."""

import fcntl
import functools
import hashlib
import logging
import os
import pathlib
import threading

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .. import _core
from .._model import Executors, torch_empty
from .._program import ProgramError
from .._tune import run_tune
from ._aten import TABLE
from ._lower import support_of, text_of

log = logging.getLogger("warploom")
aten = torch.ops.aten
_REPORT = []  # of every graph that was compiled
_LOCK = threading.Lock()

# Operators of core ATen that are sums of others here.
_FURTHER = [
    aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_no_training, aten._softmax, aten._log_softmax,
    aten._safe_softmax, aten.gelu, aten.silu, aten.hardswish, aten.hardsigmoid, aten.leaky_relu, aten.elu, aten.softplus, aten.logit,
    aten._adaptive_avg_pool2d, aten.upsample_nearest2d, aten.pixel_shuffle, aten.native_layer_norm_backward, aten.gelu_backward,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.tanh_backward, aten.sigmoid_backward, aten.silu_backward,
    aten.threshold_backward, aten.embedding_dense_backward, aten.stack, aten.tril, aten.triu, aten.logsumexp,
    aten._native_batch_norm_legit_functional, aten._batch_norm_with_update_functional, aten.addmv, aten.heaviside, aten.dist,
    aten.grid_sampler_2d,
]  # fmt: skip


def decompositions():
    """PyTorch's definitions of operators that have no row."""
    known = dict(core_aten_decompositions().items()) | get_decompositions(_FURTHER)
    return {operator: function for operator, function in known.items() if operator not in TABLE}


class _Taken(OperatorSupportBase):
    def __init__(self, reasons, views):
        self._reasons, self._views = reasons, views

    def is_node_supported(self, _submodules, node):
        return node not in self._views and self._reasons.get(node, "") is None


def _slices(graph, static):
    """Slices of arguments that PyTorch makes as views, for nothing: of tensors that are cut into several whose elements lie side
    by side, as the layers of a cache do. Kernels that read the whole would differ in where they begin, and be tuned one by one.
    Weights are left out: what is cut of them is cut once, when they are set."""
    views = set()
    for i, argument in enumerate(node for node in graph.nodes if node.op == "placeholder"):
        cuts = [user for user in argument.users if user.target in (aten.select.int, aten.slice.Tensor)]
        dense = [cut for cut in cuts if isinstance(cut.meta["val"], torch.Tensor) and cut.meta["val"].is_contiguous()]
        if i not in static and len(dense) > 1:
            views.update(dense)
    return views


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "warploom" / "torch"


def _bundle_of(text, weights, options):
    """The folder of the bundle for a graph's text: one that was made before, or a new one."""
    key = hashlib.sha256(repr((_core.version(), text, weights, sorted(options.items()), torch.get_num_threads())).encode()).hexdigest()[:32]
    folder = _cache_folder() / key
    folder.mkdir(parents=True, exist_ok=True)
    # Processes of one user tune one after the other: they have one store, and would take times from each other.
    with open(folder.parent / "lock", "w") as lock:
        if not (folder / "bundle").exists():
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "bundle").exists():
            (folder / "model.graph").write_text(text)
            run_tune(folder / "model.graph", folder / "bundle", weight=weights, progress=False, **options)
    return folder / "bundle"


class _Kernels(torch.nn.Module):
    """The kernels of a part of a graph, in place of its nodes."""

    def __init__(self, folder, used, static):
        super().__init__()
        self._model = _core.Model(str(folder))
        self._executors = Executors(self._model, threads=torch.get_num_threads())
        # `used`: the arguments that the text has as inputs, "i0" the first of them. Those in `static` are weights.
        self._inputs = [used[int(tensor.name[1:])] for tensor in self._model.inputs()]
        weights = {tensor.name for tensor in self._model.weights()}
        self._weights = [(f"i{n}", argument) for n, argument in enumerate(used) if argument in static and f"i{n}" in weights]
        self._outputs = self._model.outputs()
        self.weights = len(self._weights)
        self._lock, self._known = threading.Lock(), []

    def _set_weights(self, arguments):
        """Copies all weights if the values of any have changed: what is computed from several needs all of them."""
        tensors = [arguments[argument] for _, argument in self._weights]
        now = [(tensor.data_ptr(), tensor._version) for tensor in tensors]
        if self._known == now:
            return
        for (name, _), tensor in zip(self._weights, tensors):
            self._model.set_weight(name, tensor.detach().contiguous())
        self._known = now

    def forward(self, *arguments):
        with self._lock:
            self._set_weights(arguments)
        results = [torch_empty(tensor) for tensor in self._outputs]
        self._executors.run(0, [arguments[argument].detach().contiguous() for argument in self._inputs], results)
        return results[0] if len(results) == 1 else tuple(results)


def _static_inputs():
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return set(metadata.static_input_indices) if metadata is not None else set()


def _compile(gm, example_inputs, *, is_inference, options):
    graph = gm.graph
    reasons = support_of(graph)
    static = _static_inputs() if is_inference else set()
    taken = _Taken(reasons, _slices(graph, static))
    partitioner = CapabilityBasedPartitioner(gm, taken, allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    # Of the graph once it has been fused: PyTorch may put other nodes in place of its arguments then.
    placeholders = {node: i for i, node in enumerate(n for n in fused.graph.nodes if n.op == "placeholder")}
    entry = {"nodes": len(reasons), "kernels": 0, "weights": 0, "eager": {}}
    for reason in filter(None, reasons.values()):
        entry["eager"][reason] = entry["eager"].get(reason, 0) + 1
    for node in list(fused.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith("fused_"):
            continue
        part = fused.get_submodule(node.target)
        try:
            text, used = text_of(part.graph)
            weights = {i for i, argument in enumerate(node.args) if placeholders.get(argument, -1) in static}
            names = [f"i{n}" for n, argument in enumerate(used) if argument in weights]
            kernels = _Kernels(_bundle_of(text, names, options), used, weights)
        except (ProgramError, _core.Error) as error:
            entry["eager"][str(error)] = entry["eager"].get(str(error), 0) + 1
            log.warning("a part of %d operators stays with eager: %s", len(part.graph.nodes), error)
            continue
        entry["kernels"] += 1
        entry["weights"] += kernels.weights
        fused.set_submodule(node.target, kernels)
    for reason in entry["eager"]:
        log.info("left to eager: %s", reason)
    with _LOCK:
        _REPORT.append(entry)
    fused.recompile()
    return fused


def backend(gm, example_inputs, *, options=None):
    """A backend of torch.compile. Its options are those of `warploom tune`: torch.compile(m, backend="warploom",
    options={"trials": 32})."""
    options = {"effort": "quick"} | (options or {})
    compiler = functools.partial(_compile, is_inference=False, options=options)
    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=functools.partial(_compile, is_inference=True, options=options),
        decompositions=decompositions(),
    )(gm, example_inputs)


def report():
    """What was taken of every graph since the process began: its number of operators, of parts that are kernels, of arguments
    of those that are weights, and why others stayed with eager."""
    with _LOCK:
        return [dict(entry) for entry in _REPORT]
