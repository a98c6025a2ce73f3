"""How far a search is, as a bar of tqdm: in a terminal and in a notebook."""

import contextlib
import sys


def _bar():
    notebook = "ipykernel" in sys.modules
    if not notebook and not sys.stderr.isatty():
        return None
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415: optional
    except ImportError:
        return None
    return tqdm(unit="trial", desc="warploom")


@contextlib.contextmanager
def shown(progress):
    """Gives a function that is called with every change. `progress`: such a function; False shows nothing; None shows a bar where
    somebody looks, if tqdm is installed; True shows one anywhere."""
    if callable(progress):
        yield progress
        return
    if progress is True:
        from tqdm.auto import tqdm  # noqa: PLC0415: optional

        bar = tqdm(unit="trial", desc="warploom")
    else:
        bar = _bar() if progress is None else None
    if bar is None:
        yield lambda change: None
        return

    def show(change):
        bar.total = change["trials_total"]
        bar.set_postfix_str(change["phase"], refresh=False)
        bar.update(change["trials_done"] - bar.n)

    with bar:
        yield show
