"""How far a search is, as a bar of tqdm: in a terminal and in a notebook."""

import contextlib
import sys
import time


class _Lines:
    """A bar of tqdm's as lines on stderr, at most one a second and one for each phase."""

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
        from tqdm.auto import tqdm  # noqa: PLC0415: optional
    except ImportError:
        return _Lines() if progress else None
    return tqdm(unit="trial", desc="warploom")


@contextlib.contextmanager
def shown(progress):
    """Gives a function that is called with every change. `progress`: such a function; False shows nothing; None shows a bar where
    somebody looks, if tqdm is installed; True shows one anywhere, or lines without tqdm."""
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
