"""The cache of bundles: folders in the user's cache folder, which all processes of the user share."""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pathlib
import shutil
import tempfile
import time

from .. import _core
from .._program import ProgramError
from .._tune import run_tune, run_tune_in_background

log = logging.getLogger("warploom")
LONGEST_TURN = 3600  # seconds to wait until other processes end their tuning
_LOOK = 0.05  # seconds between attempts to lock
_LOST = "lost"  # the file beside a bundle whose kernels have lost where they ran
_SHORT = 8  # the code of a _core.Error for lack of memory: WARPLOOM_RESOURCE_EXHAUSTED
_SILENT = {"progress", "token"}  # options that have no effect on kernels
FAULTS = (ProgramError, _core.Error, OSError)  # errors after which a part of a graph stays with eager


def passes(fault):
    """Whether the same attempt may succeed later: the error comes neither from the graph or the options nor from a wrong kernel."""
    return fault.code == _SHORT if isinstance(fault, _core.Error) else getattr(fault, "code", 7) not in (1, 2, 5)


class _Unusable(OSError):
    """The error that bundles cannot be loaded although they were made just now."""


def _user_folder():
    """Returns the folder of the user in which `warploom` keeps what it need not keep. OSError: the user has no home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    except RuntimeError as error:
        raise OSError(f"there is no home folder: {error}") from error
    return pathlib.Path(base) / "warploom"


def _user_home():
    return _user_folder() / "torch"


@functools.cache
def _own_home():
    """A temporary cache folder of this process, which is removed at its exit."""
    folder, owner = tempfile.mkdtemp(prefix="warploom-"), os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return pathlib.Path(folder)


@functools.cache  # the cache makes sure that each message is logged once
def _warn(said):
    log.warning("%s", said)


def _made_at(bundle):
    """Returns a value by which a bundle differs from one that is made later in the same place; None: there is no bundle."""
    try:
        found = bundle.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


@contextlib.contextmanager
def _hurrying(home):
    """A context in which searches in the background, of all processes, give way."""
    with open(home / "hurry", "a+") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(mark, fcntl.LOCK_UN)  # a forked process may have the file open, too


def _wanted(mark):
    """Whether a process holds the lock of this file. Only the process whose turn it is asks, since two that ask would see each other."""
    try:
        with open(mark, "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
    except OSError:
        pass  # nobody can say that he waits
    return False


def _store_of(options):
    """Returns the file of the store that a search uses, as `warploom` chooses it; None: a coordinator has it."""
    if "server" in options:
        return None
    return pathlib.Path(options["store"]) if options.get("store") else _user_folder() / "store.db"


@contextlib.contextmanager
def _turn(home, bundle):
    """A context in which this process may tune. Processes of one user tune one after the other, because they share a store and would
    disturb each other's times. Gives True if this process must tune, False if another one made the bundle in the meantime."""
    until, said, before = time.monotonic() + LONGEST_TURN, False, _made_at(bundle)
    mine = False
    with open(home / "lock", "a+") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
                break
            except BlockingIOError:
                if _made_at(bundle) not in (None, before):
                    break
                if time.monotonic() > until:
                    raise TimeoutError(f"other processes have tuned for {LONGEST_TURN} s; {home / 'lock'} is locked by one") from None
                if not said:
                    log.info("another process tunes; waiting for it")
                said = True
                time.sleep(_LOOK)
        try:
            yield mine
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _made(folder, text, weights, options, background, share):
    """Tunes a graph into the bundle of a folder, which appears complete or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, made = folder / "model.graph", folder / f"bundle.{os.getpid()}"
    graph.write_text(text)
    try:
        if background:
            quiet = {name: value for name, value in options.items() if name != "progress"}
            store = _store_of(options)
            marks = [folder.parent / "hurry"] + ([store.with_name(store.name + ".wanted")] if store else [])
            gives_way = lambda: background() or any(map(_wanted, marks))  # noqa: E731
            run_tune_in_background(graph, made, weight=weights, gives_way=gives_way, share=share, **quiet)
        else:
            run_tune(graph, made, weight=weights, patient=False, **options)
        os.rename(made, folder / "bundle")
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sound(bundle, load):
    """Returns the result of `load` for a bundle; None if the bundle is missing or damaged."""
    if not bundle.exists():
        return None
    try:
        return load(bundle)
    except _core.Error as error:
        if passes(error):
            raise
        _warn(f"{bundle} cannot be used, and is made again: {error}")
        return None


def _from(home, key, load, make, background):
    """Returns the result of `load` for the bundle of a key in the cache folder `home`. If the bundle is missing or damaged, `make` makes
    it."""
    bundle = home / key / "bundle"
    found = _sound(bundle, load)
    while found is None:
        home.mkdir(parents=True, exist_ok=True)
        with contextlib.nullcontext() if background else _hurrying(home), _turn(home, bundle) as mine:
            found = _sound(bundle, load)
            if found is None and mine:
                _remove(bundle)
                make(bundle.parent)
                try:
                    found = load(bundle)
                except _core.Error as error:
                    if passes(error):
                        raise
                    raise _Unusable(f"{bundle} was made and cannot be loaded: {error}") from error
    return found


def _key(text, weights, options, threads):
    decides = sorted((name, value) for name, value in options.items() if name not in _SILENT)
    # The CPU is part of the key, because bundles are machine code, and machines with other CPUs may share the home folder.
    words = (_core.version(), _core.cpu(), text, weights, decides, threads)
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


def known(text, weights, options, threads, load):
    """Returns the result of `load` for the bundle that cached() would find; None if it would make a new one, or if the bundle's kernels have
    lost where they ran."""
    try:
        folder = _user_home() / _key(text, weights, options, threads)
        return None if (folder / _LOST).exists() else _sound(folder / "bundle", load)
    except OSError:
        return None


def has_lost(text, weights, options, threads):
    """Notes that the kernels of a bundle made the graph slower in which they were tried, so that later processes try them again, too."""
    with contextlib.suppress(OSError):
        (_user_home() / _key(text, weights, options, threads) / _LOST).touch()


def cached(text, weights, options, threads, load, background=None, share=None):
    """Returns the result of `load` for the bundle of a graph's text: one that a process on the same kind of CPU has made before, or a new
    one. If the user's cache folder cannot be used, the bundle is in a temporary one of this process. `background`, unless it is None: search
    only in idle time or, with a `share`, in this part of the machine's time, and raise GaveWay as soon as this function returns true, another
    call of cached() wants to make a bundle, or a program waits for the store."""
    key = _key(text, weights, options, threads)
    try:
        return _from(_user_home(), key, load, lambda folder: _made(folder, text, weights, options, background, share), background)
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        _warn(f"the cache cannot be used, and this process has one of its own: {error}")
    home = _own_home()
    # The program's default store lies in the same cache folder, which cannot be used. So the store needs another place, too.
    own = options if {"store", "server"} & options.keys() else options | {"store": home / "store.db"}
    return _from(home / "torch", key, load, lambda folder: _made(folder, text, weights, own, background, share), background)
