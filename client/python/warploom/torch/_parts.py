"""Cuts a graph into parts that become kernels and operators that stay with eager."""

import functools
import logging
import operator
import threading

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ._borders import views_outside
from ._cache import FAULTS, cached, passes
from ._kernels import Kernels
from ._later import Later
from ._lower import support_of, text_of
from ._options import raise_if_wrong
from ._text import Unsupported

log = logging.getLogger("warploom")
aten = torch.ops.aten
_REPORT = []  # the report: an entry for every graph that was compiled
_SAID = set()  # the reasons for staying with eager that were logged already
_LOCK = threading.Lock()  # guards _REPORT and _SAID


class _Taken(OperatorSupportBase):
    def __init__(self, reasons, views):
        self._reasons, self._views = reasons, views

    def is_node_supported(self, _submodules, node):
        return node not in self._views and self._reasons.get(node, "") is None


def _slices(graph, static):
    """Returns the slices of arguments that stay views of PyTorch, which cost nothing: slices of tensors that are cut into several
    contiguous ones, such as the layers of a cache of keys. Kernels that read the whole tensor would differ in an offset, so that each would
    need a search of its own. Slices of weights are left out, since they are cut only once, when the weights are set."""
    views = set()
    for i, argument in enumerate(node for node in graph.nodes if node.op == "placeholder"):
        cuts = [user for user in argument.users if user.target in (aten.select.int, aten.slice.Tensor)]
        dense = [cut for cut in cuts if isinstance(cut.meta["val"], torch.Tensor) and cut.meta["val"].is_contiguous()]
        if i not in static and len(dense) > 1:
            views.update(dense)
    return views


def left_to_eager(reason):
    """Logs, and adds to the report, code of which no graph was made."""
    log.warning("code stays with eager: %s", reason)
    with _LOCK:
        _REPORT.append({"nodes": 0, "kernels": 0, "weights": 0, "eager": {reason: 1}})


def _say(entry):
    """Adds an entry to the report, and logs why operators stay with eager, each reason once in a process."""
    with _LOCK:
        _REPORT.append(entry)
        new = [reason for reason in entry["eager"] if reason not in _SAID]
        _SAID.update(new)
    if new:
        left = sum(entry["eager"].values())
        log.warning("%d of %d operators stay with eager: %s", left, entry["nodes"], "; ".join(new))


def _attempt(entry, make, reason, count):
    """Returns a function for Later that tries again to make the kernels of a part of `count` operators, and updates the report when it
    succeeds."""

    def attempt():
        try:
            kernels = make()
        except FAULTS as error:
            log.info("a part still stays with eager: %s", error)
            return None
        with _LOCK:
            left = entry["eager"].pop(reason) - count
            entry["eager"] |= {reason: left} if left > 0 else {}
            entry["kernels"] += 1
            entry["weights"] += kernels.weights
        log.warning("%d operators that had stayed with eager have kernels now: %s", count, reason)
        return kernels

    return attempt


def _without(entry, part, error):
    """Records in an entry of the report that a part stays with eager. Returns the reason and the part's number of operators."""
    count = sum(one.op == "call_function" for one in part.graph.nodes)
    entry["eager"][str(error)] = entry["eager"].get(str(error), 0) + count
    return str(error), count


def with_kernels(gm, static, options):
    """Returns a graph module with kernels in place of the operators that can have them. `static`: indices of the arguments that are
    weights."""
    graph = gm.graph
    reasons = support_of(graph)
    entry = {"nodes": len(reasons), "kernels": 0, "weights": 0, "eager": {}}
    for node, reason in reasons.items():
        if reason is not None and node.target is not operator.getitem:
            entry["eager"][reason] = entry["eager"].get(reason, 0) + 1
    taken = _Taken(reasons, _slices(graph, static))
    views_outside(graph, lambda node: taken.is_node_supported(None, node))
    graph.eliminate_dead_code()
    partitioner = CapabilityBasedPartitioner(gm, taken, allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    # Placeholders are looked up after the fusion, in which PyTorch may replace the nodes of arguments.
    placeholders = {node: i for i, node in enumerate(n for n in fused.graph.nodes if n.op == "placeholder")}
    for node in list(fused.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith("fused_"):
            continue
        part = fused.get_submodule(node.target)
        try:
            text = text_of(part.graph)
        except Unsupported as error:
            _without(entry, part, error)
            continue
        weights = {i for i, argument in enumerate(node.args) if placeholders.get(argument, -1) in static}
        names = [f"i{n}" for n, argument in enumerate(text.used) if argument in weights]
        make = functools.partial(cached, text.text, names, options, functools.partial(Kernels, part=text, static=weights))
        try:
            kernels = make()
        except FAULTS as error:
            raise_if_wrong(error, options)
            reason, count = _without(entry, part, error)
            if passes(error):
                fused.set_submodule(node.target, Later(part, _attempt(entry, make, reason, count)))
            continue
        entry["kernels"] += 1
        entry["weights"] += kernels.weights
        fused.set_submodule(node.target, kernels)
    _say(entry)
    fused.recompile()
    return fused


def report():
    """Returns a list with a dict for every graph that this process compiled: `nodes`, the number of its operators; `kernels`, the number of
    parts that became kernels; `weights`, the number of their arguments that are weights; `eager`, the number of operators that stayed with
    eager, by reason."""
    with _LOCK:
        return [dict(entry) for entry in _REPORT]
