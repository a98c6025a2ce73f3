"""The bundles of graphs: a folder of the user's cache, which a second process finds."""

import fcntl
import hashlib
import os
import pathlib

import torch

from .. import _core
from .._tune import run_tune


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "warploom" / "torch"


def bundle_of(text, weights, options):
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
