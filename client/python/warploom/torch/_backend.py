"""torch.compile(model, backend="warploom")."""

import fcntl
import functools
import hashlib
import logging
import operator
import os
import pathlib
import threading

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .. import _core
from .._model import Executors, maker_of
from .._program import ProgramError
from .._tune import run_tune
from ._aten import TABLE
from ._lower import support_of, text_of

log = logging.getLogger("warploom")
aten = torch.ops.aten
_REPORT = []  # of every graph that was compiled
_LOCK = threading.Lock()
MOST_SIZES = 16  # of one graph whose extents vary

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


_ADDRESS, _CONTIGUOUS = torch.Tensor.data_ptr, torch.Tensor.contiguous
_VERSION = operator.attrgetter("_version")


def _picker(places):
    """A function that picks what is at these places of a tuple: a tuple, also of one."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda given: tuple(given[place] for place in places)


class _Kernels(torch.nn.Module):
    """The kernels of a part of a graph, in place of its nodes."""

    def __init__(self, folder, used, static):
        super().__init__()
        self._model = _core.Model(str(folder))
        self._executors = Executors(self._model, threads=torch.get_num_threads())
        # `used`: the arguments that the text has as inputs, "i0" the first of them. Those in `static` are weights.
        self._inputs = _picker([used[int(tensor.name[1:])] for tensor in self._model.inputs()])
        weights = {tensor.name: tensor.nbytes for tensor in self._model.weights()}
        taken = [(f"i{n}", argument) for n, argument in enumerate(used) if argument in static and f"i{n}" in weights]
        # Small ones first: a large one that is multiplied with a small one is not kept until that is there.
        taken.sort(key=lambda weight: weights[weight[0]])
        self._names, self._weights = [name for name, _ in taken], _picker([argument for _, argument in taken])
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


def _static_inputs():
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return set(metadata.static_input_indices) if metadata is not None else set()


def _dynamic_arguments(graph):
    """Places of the arguments that are extents, or tensors with extents that are not known."""

    def is_dynamic(value):
        return isinstance(value, torch.SymInt) or (isinstance(value, torch.Tensor) and not all(isinstance(e, int) for e in value.shape))

    placeholders = (node for node in graph.nodes if node.op == "placeholder")
    return [i for i, node in enumerate(placeholders) if is_dynamic(node.meta.get("val"))]


class _ManySizes:
    """A graph whose extents are known when it is called: kernels for each of the sizes that are seen first, eager for more."""

    def __init__(self, gm, dynamic, static, options):
        self._gm, self._dynamic, self._static, self._options = gm, _picker(dynamic), static, options
        self._lock, self._known = threading.Lock(), {}

    def _specialised(self, arguments):
        """The graph with the extents of these arguments."""
        mode = FakeTensorMode()
        given = [mode.from_tensor(a, static_shapes=True) if isinstance(a, torch.Tensor) else a for a in arguments]
        with torch.no_grad():
            return make_fx(self._gm)(*given)

    def __call__(self, *arguments):
        seen = self._dynamic(arguments)
        size = tuple((*a.shape, *a.stride()) if isinstance(a, torch.Tensor) else a for a in seen)
        made = self._known.get(size)
        if made is None:
            with self._lock:
                made = self._known.get(size)
                if made is None and len(self._known) < MOST_SIZES:
                    made = self._known[size] = _with_kernels(self._specialised(arguments), self._static, self._options)
            if made is None:
                log.warning("a graph has been called with more than %d sizes; others stay with eager", MOST_SIZES)
                made = self._known[size] = self._gm
        return made(*arguments)


def _compile(gm, example_inputs, *, is_inference, options):
    static = _static_inputs() if is_inference else set()
    dynamic = _dynamic_arguments(gm.graph)
    return _ManySizes(gm, dynamic, static, options) if dynamic else _with_kernels(gm, static, options)


def _with_kernels(gm, static, options):
    """A graph with kernels in place of the operators that have them. `static`: places of the arguments that are weights."""
    graph = gm.graph
    reasons = support_of(graph)
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
