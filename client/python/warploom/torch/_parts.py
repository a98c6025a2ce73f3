"""Cuts a graph into parts that become kernels and operators that stay with eager."""

import copy
import functools
import logging
import operator
import threading
import time
import weakref

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .._tune import GaveWay
from ._background import LOOK, Others, in_background
from ._borders import views_outside
from ._cache import FAULTS, cached, has_lost, known, passes
from ._kernels import Kernels
from ._later import Later
from ._lower import support_of, text_of
from ._options import of_the_first_answer, raise_if_later_wrong, raise_if_wrong
from ._text import Unsupported
from ._trials import Part, Tried

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


def _entry(eager=()):
    """Returns a new entry of the report."""
    return {"nodes": 0, "kernels": 0, "weights": 0, "eager": dict(eager), "later": 0, "replaced": [], "against_eager": None}


def left_to_eager(reason):
    """Logs, and adds to the report, code of which no graph was made."""
    log.warning("code stays with eager: %s", reason)
    with _LOCK:
        _REPORT.append(_entry(eager={reason: 1}))


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


def _trial(before, after, stays):
    """Returns what a trial has shown, for the report; no times if what was tried failed."""
    times = {} if before is None else {"before_ms": 1e3 * before, "after_ms": 1e3 * after}
    return times | {"stays": stays}


def _replaced(entry, lost, before, after, stays):
    """Records what a trial of new kernels in their graph has shown. `lost` is called if they go back."""
    found = _trial(before, after, stays)
    with _LOCK:
        entry["later"] -= 1
        entry["replaced"].append(found)
    if not stays:
        lost()
    log.info("new kernels were tried in their graph: %s", found)


def _left_to_eager(entry, before, after, stays):
    """Records what the trial of eager has shown. If the graph is slower by kernels, it runs with eager from now on."""
    with _LOCK:
        entry["against_eager"] = _trial(before, after, stays)
        if not stays:
            return
        reason = f"the graph takes {1e3 * before:.3f} ms by kernels and {1e3 * after:.3f} ms with eager"
        count = entry["eager"][reason] = entry["nodes"] - sum(entry["eager"].values())
        entry["kernels"] = 0
    log.warning("%d operators go back to eager: %s", count, reason)


def _found(tried, make, share):
    """Searches for better kernels of a part, while the compiled graph is used, and while the machine is idle or, with a `share`, in this part
    of its time. Returns None if there are none."""
    is_busy = Others().look if share is None else lambda: False
    while tried() is not None:
        if is_busy():
            time.sleep(LOOK)
            continue
        try:
            return make(background=lambda: is_busy() or tried() is None, share=share)
        except (GaveWay, TimeoutError):
            time.sleep(LOOK)
        except FAULTS as error:
            log.warning("a part keeps the kernels of the first answer: %s", error)
            return None
    return None


def _search(tried, part, make, lost, entry, share):
    """Searches for better kernels of a part, and has the compiled graph try them. `tried`, `part`: weak references to them."""
    queued = False
    try:
        found = _found(tried, make, share)
        graph, its = tried(), part()
        if found is not None and graph is not None:
            if its.made is not its.eager:
                found.prepare_like(its.made)
            graph.replace(its, found, functools.partial(_replaced, entry, lost))
            queued = True
    finally:
        if not queued:
            with _LOCK:
                entry["later"] -= 1


def _search_later(graph, searches, entry, share):
    """Queues the searches of a compiled graph for the background, and the comparison with eager that follows them. Returns the graph as a
    function that tries what is found."""
    tried = Tried(graph)
    known = weakref.ref(tried)
    for part, make, lost in searches:
        in_background(functools.partial(_search, known, weakref.ref(part), make, lost, entry, share))

    def compare():
        graph = known()
        if graph is not None:
            graph.against_eager(functools.partial(_left_to_eager, entry))

    if entry["kernels"]:
        in_background(compare)
    return tried


def _parts_of(gm, static, entry):
    """Cuts a graph. Returns it, and a list of the parts that may become kernels: the name by which the graph calls the part, its module, its
    Text, and the indices of those of its arguments that are weights. Fills in `nodes` and `eager` of the entry of the report."""
    graph = gm.graph
    reasons = support_of(graph)
    entry["nodes"] = len(reasons)
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
    parts = []
    for node in list(fused.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith("fused_"):
            continue
        part = fused.get_submodule(node.target)
        try:
            text = text_of(part.graph)
        except Unsupported as error:
            _without(entry, part, error)
            continue
        parts.append((node.target, part, text, {i for i, argument in enumerate(node.args) if placeholders.get(argument, -1) in static}))
    return fused, parts


def with_kernels(gm, static, options):
    """Returns a function that computes a graph with kernels in place of the operators that can have them. `static`: indices of the arguments
    that are weights. options["tune"]: whether kernels are searched before the function is returned, or later, while it is called."""
    later = options["tune"] == "later"
    asked = {name: value for name, value in options.items() if name not in ("tune", "share")}
    if later:
        raise_if_later_wrong(asked)
    entry = _entry()
    fused, parts = _parts_of(gm, static, entry)
    searches = []
    threads = torch.get_num_threads()
    for target, part, text, weights in parts:
        names = [f"i{n}" for n, argument in enumerate(text.used) if argument in weights]
        load = functools.partial(Kernels, part=text, static=weights, threads=threads)
        search = functools.partial(cached, text.text, names, asked, threads, load)
        make = functools.partial(cached, text.text, names, of_the_first_answer(asked), threads, load) if later else search
        is_known = False
        try:
            kernels = known(text.text, names, asked, threads, load) if later else None
            is_known = kernels is not None
            kernels = kernels or make()
        except FAULTS as error:
            raise_if_wrong(error, asked)
            reason, count = _without(entry, part, error)
            if passes(error):
                fused.set_submodule(target, Later(part, _attempt(entry, make, reason, count)))
            continue
        entry["kernels"] += 1
        entry["weights"] += kernels.weights
        if later:
            kernels = Part(kernels, part)
            searches += [] if is_known else [(kernels, search, functools.partial(has_lost, text.text, names, asked, threads))]
        fused.set_submodule(target, kernels)
    entry["later"] = len(searches)
    _say(entry)
    fused.recompile()
    return _search_later(fused, searches, entry, options.get("share")) if later else fused


def report():
    """Returns a list with a dict for every graph that this process compiled: `nodes`, the number of its operators; `kernels`, the number of
    parts that became kernels; `weights`, the number of their arguments that are weights; `eager`, the number of operators that stayed with
    eager, by reason; `later`, the number of parts for which better kernels are still searched or tried; `replaced`, what the trials of such
    kernels have shown: the time of a call of the graph in ms before and after, and whether they stay; `against_eager`, the same of the last
    trial, that of eager for the whole graph."""
    with _LOCK:
        return copy.deepcopy(_REPORT)
