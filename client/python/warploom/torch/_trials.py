"""A compiled graph whose kernels are replaced while it runs. New kernels are tried in the place where they run: calls of the graph use the
present and the new ones in turns, some calls each time, and the new ones stay only if the whole graph is not slower with them."""

import logging
import threading
import time

import torch

log = logging.getLogger("warploom")
COUNTED, TURN = 15, 3  # calls of each of the two ways that are compared, and how many of them are in one turn
# Seconds at the beginning of a turn in which no call is counted, nor the turn's first call. The threads of another pool, such as those of
# PyTorch after a turn of eager, still spin for some time.
SETTLES = 0.03
_NOISE = 1.01  # what new kernels may add to the time of the whole graph, since they are faster alone
_CLEARLY = 0.9  # by which factor eager must be faster than kernels to replace them
_SIDE, _NONE = threading.local(), {}  # .new: the new ways that the call of this thread uses, a dict: part -> way


def _typical(times):
    """The time by which two ways are compared: the median of the faster half, which other programs disturb least."""
    return sorted(times)[len(times) // 4]


class Part(torch.nn.Module):
    """A part of a graph, run in the way `made`, which may be `eager`: how PyTorch runs it."""

    def __init__(self, made, eager):
        super().__init__()
        self.made, self.eager = made, eager

    def forward(self, *arguments):
        way = getattr(_SIDE, "new", _NONE).get(self)
        return (self.made if way is None else way)(*arguments)


class _Trial:
    """One comparison: the graph with its present kernels against the graph with `ways`, a dict: part -> its new way."""

    def __init__(self, ways, keeps, done):
        """keeps: whether the new ways stay, given their time over the present one's. done: called with the seconds of a call before and after,
        None if the new ways fail, and whether they stay."""
        self.ways, self._keeps, self._done = ways, keeps, done
        self._times = [], []
        self._which, self._since, self._left = 1, None, 0  # of the present turn: its way, its first call, how many calls it still counts

    def next(self, now):
        """Returns which way a call takes that begins now: 0 the present, 1 the new one. Called with the graph's lock."""
        if self._left <= 0:
            self._which, self._since, self._left = 1 - self._which, now, TURN
        return self._which

    def take(self, which, begin, seconds):
        """Takes the time of a call. Returns whether the trial is decided, once. Called with the graph's lock."""
        if self._times is None or which != self._which or begin == self._since or begin - self._since < SETTLES:
            return False
        self._times[which].append(seconds)
        self._left -= 1
        if min(map(len, self._times)) < COUNTED:
            return False
        before, after = map(_typical, self._times)
        self._times = None
        stays = self._keeps(after / before)
        for part, way in self.ways.items() if stays else ():
            part.made = way
        self._done(before, after, stays)
        return True

    def fail(self):
        """Ends the trial because the new ways fail. Returns whether it was going on. Called with the graph's lock."""
        goes_on, self._times = self._times is not None, None
        if goes_on:
            self._done(None, None, False)
        return goes_on


class Tried:
    """Calls a compiled graph, and tries new ways to run its parts, one trial after another."""

    def __init__(self, graph, clock=time.perf_counter):
        """clock: returns the present time in seconds."""
        self._graph, self._clock, self._lock = graph, clock, threading.Lock()  # the lock guards the trials
        self._trials = []
        self._trial = None  # the first of the trials; None: there is none, which calls see without the lock

    def parts(self):
        return [module for module in self._graph.children() if isinstance(module, Part)]

    def replace(self, part, way, done):
        """Tries a new way to run a part in the calls that follow. It stays if the graph is not slower with it. `done` is then called with the
        seconds of a call before and after, and whether it stays."""
        self._add(_Trial({part: way}, lambda ratio: ratio <= _NOISE, done))

    def against_eager(self, done):
        """Tries PyTorch's operators, to which the graph was decomposed, for all parts in the calls that follow. They stay if the graph is
        clearly faster with them."""
        self._add(_Trial({part: part.eager for part in self.parts()}, lambda ratio: ratio < _CLEARLY, done))

    def _add(self, trial):
        with self._lock:
            self._trials.append(trial)
            self._trial = self._trials[0]

    def _end(self, trial):
        if trial in self._trials:
            self._trials.remove(trial)
            self._trial = self._trials[0] if self._trials else None

    def __call__(self, *arguments):
        trial = self._trial
        return self._graph(*arguments) if trial is None else self._tried(trial, arguments)

    def _tried(self, trial, arguments):
        begin = self._clock()
        with self._lock:
            which = trial.next(begin)
        _SIDE.new = trial.ways if which else _NONE
        try:
            results = self._graph(*arguments)
        except Exception as error:
            if not which:
                raise
            failed = str(error)  # not the error itself, which would keep the values of the call that failed
        else:
            failed = None
        finally:
            _SIDE.new = _NONE
        if failed is not None:
            results = self._graph(*arguments)  # if an argument is wrong, this raises the error again
            log.warning("new kernels fail where they run, and are left out: %s", failed)
            with self._lock:
                if trial.fail():
                    self._end(trial)
            return results
        with self._lock:
            if trial.take(which, begin, self._clock() - begin):
                self._end(trial)
        return results
