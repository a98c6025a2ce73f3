"""Searches in the background: while a program runs with its first kernels, one thread searches for better ones, one part after another."""

import collections
import logging
import os
import pathlib
import threading
import time

log = logging.getLogger("warploom")


# The share of the machine's processor time that other programs may take, by which a search goes on, and how often it is looked at.
MOST_BUSY, LOOK = 0.6, 1.0


class Others:
    """What share of the machine's processor time is taken by what is no search. Searches run with the nice value 19, and Linux counts the
    time of such processes apart."""

    def __init__(self, read=lambda: pathlib.Path("/proc/stat").read_text(), clock=time.monotonic):
        self._read, self._clock = read, clock
        self._then, self._before = clock(), self._counts()
        self.are_busy = False

    def _counts(self):
        """Returns the time that other programs have taken, and all time, in ticks of all processors."""
        try:
            user, nice, system, idle, waiting, *interrupts = map(int, self._read().splitlines()[0].split()[1:8])
        except (OSError, ValueError, IndexError):
            return 0, 0
        taken = user + system + sum(interrupts)
        return taken, taken + nice + idle + waiting

    def look(self):
        """Returns whether other programs took more than MOST_BUSY of the machine in the last LOOK seconds before the last look."""
        if self._clock() - self._then >= LOOK:
            (taken, all_), (taken_before, all_before) = self._counts(), self._before
            self.are_busy = all_ > all_before and taken - taken_before > MOST_BUSY * (all_ - all_before)
            self._then, self._before = self._clock(), (taken, all_)
        return self.are_busy


class Background:
    """A queue of tasks and the daemon thread that runs them. The thread ends when the queue is empty and starts again with the next task."""

    def __init__(self):
        self._changed = threading.Condition()  # guards the queue and the flag
        self._tasks, self._running = collections.deque(), False

    def add(self, task):
        """Queues a task: a function that raises nothing that matters to anybody; errors are logged."""
        with self._changed:
            self._tasks.append(task)
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._work, name="warploom-search", daemon=True).start()
        except RuntimeError as error:  # the process may have no further thread
            with self._changed:
                self._running = False
            log.warning("nothing is searched in the background: %s", error)

    def _work(self):
        while True:
            with self._changed:
                if not self._tasks:
                    self._running = False
                    self._changed.notify_all()
                    return
                task = self._tasks.popleft()
            try:
                task()
            except Exception as error:  # noqa: BLE001: the thread must go on with the other tasks
                log.warning("a search in the background has failed: %s", error)

    def wait(self, seconds=None):
        """Waits until nothing is queued or running, at most these seconds. Returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)


_BACKGROUND = Background()


def _forget():
    """Gives a forked process a queue of its own, since the thread that works is the parent's."""
    global _BACKGROUND  # noqa: PLW0603
    _BACKGROUND = Background()


os.register_at_fork(after_in_child=_forget)


def in_background(task):
    """Queues a task, a function without arguments, for the thread of the background."""
    _BACKGROUND.add(task)


def wait(seconds=None):
    """Waits until all searches in the background have ended, at most these seconds; None: however long they take. Returns whether they have.
    Kernels that were found are tried by the calls that follow."""
    return _BACKGROUND.wait(seconds)
