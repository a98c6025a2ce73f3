"""Shows the progress of a search as a tqdm bar, in terminals and notebooks."""

import contextlib
import sys
import time


class _Lines:
    """A replacement of a tqdm bar, which prints lines to stderr: one for each phase, and between them at most one a second."""

    total, n, _phase, _next = 0, 0, "", 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def set_postfix_str(self, phase, *, refresh):
        self._next = self._next if phase == self._phase else 0.0
        self._phase = phase

    def update(self, more):
        self.n += more
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 1
            print(f"warploom: {self.n} of {self.total} trials, {self._phase}", file=sys.stderr, flush=True)


def _bar(progress):
    if progress is False or (progress is None and "ipykernel" not in sys.modules and not sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415: tqdm is optional
    except ImportError:
        return _Lines() if progress else None
    return tqdm(unit="trial", desc="warploom")


@contextlib.contextmanager
def shown(progress):
    """A context manager that gives a function to be called with every change. `progress`: that function; False: nothing is shown; None: a
    bar in terminals and notebooks, if tqdm is installed; True: a bar everywhere, or lines if tqdm is not installed."""
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
