"""Parts of graphs that stay with eager after a temporary error, until an attempt succeeds."""

import threading
import time

import torch

# Seconds between two attempts: at first, and at most; each pause is twice as long as the one before it.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0


class Later(torch.nn.Module):
    """Runs a part with eager until `attempt()` returns a module for it. `attempt` returns None if the error persists, and raises nothing. The
    first call after a pause makes the next attempt and waits for it, as the first compilation did; other calls meanwhile use eager."""

    def __init__(self, eager, attempt):
        super().__init__()
        self._eager, self._attempt, self._made = eager, attempt, None
        self._lock, self._pause = threading.Lock(), _FIRST_PAUSE
        self._again = time.monotonic() + self._pause

    def _try_again(self):
        if time.monotonic() < self._again or not self._lock.acquire(blocking=False):
            return
        try:
            if self._made is None:
                self._made = self._attempt()
        finally:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._again = time.monotonic() + self._pause
            self._lock.release()

    def forward(self, *arguments):
        if self._made is None:
            self._try_again()
        return (self._made if self._made is not None else self._eager)(*arguments)
