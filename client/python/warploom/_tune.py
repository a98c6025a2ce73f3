"""Tuning, by the program `warploom`, which compiles and measures in processes of its own."""

import pathlib
import tempfile
import threading

from ._model import Model
from ._program import Call
from ._progress import shown
from ._report import Report


def follow(running, progress, patient=True):
    """Shows the progress of a Call until it ends, and returns its report. The first KeyboardInterrupt is passed on to the program, which
    ends a search early and keeps its best kernels; the exception is raised again at the end or, if not `patient`, at once."""
    interrupted = False
    with shown(progress) as show:
        changes = running.progress()
        while True:
            try:
                change = next(changes, None)
                if change is None:
                    break
                show(change)
            except KeyboardInterrupt:
                if interrupted or not patient:
                    raise
                interrupted = True
                running.interrupt()
                changes = running.progress()
    if interrupted:
        running.wait()
        raise KeyboardInterrupt("the best kernels so far are kept: the same call goes on from here")
    return Report(running.result())


def run_tune(path, out, *, progress=None, token=None, patient=True, **options):
    """Runs `warploom tune PATH --out OUT` with further options, such as trials=8, and returns its report."""
    with Call("tune", path, out=out, token=token, progress=True, **options) as running:
        return follow(running, progress, patient)


class GaveWay(Exception):
    """A search in the background was ended because something else needs the machine or the store. What was measured is kept."""


def run_tune_in_background(path, out, *, gives_way, share=None, token=None, **options):
    """Does what run_tune() does, and shows nothing. `share`: the part of the machine's processor time that it may take; None: only processor
    time that no other program wants. Raises GaveWay as soon as `gives_way()`, which is asked ten times a second, is true."""
    how = ("--idle",) if share is None else ("--share", share)
    with Call(*how, "tune", path, out=out, token=token, progress=True, **options) as running:
        ended = threading.Thread(target=running.wait, daemon=True)
        ended.start()
        try:
            while ended.is_alive():
                ended.join(0.1)
                if gives_way():
                    raise GaveWay
        finally:
            running.stop()
            ended.join()
        return Report(running.result())


def run_tune_with_page(path, out, **options):
    """Does what run_tune() does, and gives the report its HTML page, unless several sizes are tuned, for which there is no page."""
    if "," in str(options.get("bind", "")) or options.get("html"):
        return run_tune(path, out, **options)
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        page = pathlib.Path(folder) / "report.html"
        report = run_tune(path, out, html=page, **options)
        report.page = page.read_text()
    return report


def open_bundle(path, out, *, threads, make):
    """Calls `make(folder)`, which writes a bundle of the graph in `path`, and loads the bundle as a Model. The folder is `out`, or a
    temporary one that lives as long as the model. Weights are loaded if `path` is an .onnx file. The model's `report` is the result of
    `make`."""
    path = pathlib.Path(path)
    keep = None if out is not None else tempfile.TemporaryDirectory(prefix="warploom-")
    folder = pathlib.Path(out) if out is not None else pathlib.Path(keep.name) / "bundle"
    report = make(folder)
    model = Model(folder, threads=threads)
    model.report, model._keep = report, keep
    if path.suffix == ".onnx":
        model.load_weights(path)
    return model


def tune(model, *, out=None, target=None, server=None, trials=None, store=None, threads=0, progress=None, **options):
    """Tunes a model and returns it, loaded; an ONNX model also has its weights.

    model: the path of an .onnx or .graph file. out: the folder for the bundle; None: a temporary one. progress: a function that is called
    with each dict of `--progress json`, or True or False; None shows a tqdm bar in terminals and notebooks. Further options are those of
    `warploom tune`, such as effort="quick" or bind="batch=8". The result's `report` is a Report. On an interrupt the best kernels so far are
    kept, and KeyboardInterrupt is raised.
    """
    options |= {"target": target, "server": server, "trials": trials, "store": store, "progress": progress}
    return open_bundle(model, out, threads=threads, make=lambda folder: run_tune_with_page(model, folder, **options))
