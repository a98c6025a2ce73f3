"""Tuning, by the program `warploom`: it measures in processes of its own."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from ._model import Model


class TuneError(RuntimeError):
    """The program's message; `code` is its exit code."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def program():
    """The path of the program `warploom`: WARPLOOM_BIN_DIR, the package's own, or that of PATH."""
    folders = [os.environ.get("WARPLOOM_BIN_DIR"), pathlib.Path(__file__).parent / "bin"]
    for folder in filter(None, folders):
        found = shutil.which("warploom", path=str(folder))
        if found:
            return found
    found = shutil.which("warploom")
    if not found:
        raise TuneError("the program warploom was not found: set WARPLOOM_BIN_DIR to its folder", 7)
    return found


def _words(options):
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            yield flag
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                yield from (flag, str(one))


def run_tune(path, out, **options):
    """Runs `warploom tune PATH --out OUT` with further options, such as trials=8, and returns its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [program(), "tune", str(path), "--out", str(out), "--json", str(report), *_words(options)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TuneError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "warploom tune failed", done.returncode)
        return json.loads(report.read_text())


def tune(model, *, out=None, target=None, server=None, trials=None, store=None, threads=0, **options):
    """Tunes an ONNX model and returns it, loaded, with its weights.

    model: the path of an .onnx or .graph file. out: where the bundle is written; a temporary folder if None. Further options are
    those of `warploom tune`, such as effort="quick" or bind="batch=8". The result's `report` is the report as a dict.
    """
    path = pathlib.Path(model)
    keep = None if out is not None else tempfile.TemporaryDirectory(prefix="warploom-")
    folder = pathlib.Path(out) if out is not None else pathlib.Path(keep.name) / "bundle"
    report = run_tune(path, folder, target=target, server=server, trials=trials, store=store, **options)
    tuned = Model(folder, threads=threads)
    tuned.report, tuned._keep = report, keep  # the folder lives as long as the model
    if path.suffix == ".onnx":
        tuned.load_weights(path)
    return tuned
