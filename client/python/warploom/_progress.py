"""How far a search is, as a bar of tqdm: in a terminal and in a notebook."""

import contextlib
import sys


def _bar(progress):
    if progress is False or (progress is None and "ipykernel" not in sys.modules and not sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415: optional
    except ImportError:
        if progress:
            raise
        return None
    return tqdm(unit="trial", desc="warploom")


@contextlib.contextmanager
def shown(progress):
    """Gives a function that is called with every change. `progress`: such a function; False shows nothing; None shows a bar where
    somebody looks, if tqdm is installed; True shows one anywhere."""
    if callable(progress):
        yield progress
        return
    bar = _bar(progress)
    if bar is None:
        yield lambda change: None
        return

    def show(change):
        bar.total = change["trials_total"]
        bar.set_postfix_str(change["phase"], refresh=False)
        bar.update(change["trials_done"] - bar.n)

    with bar:
        yield show
