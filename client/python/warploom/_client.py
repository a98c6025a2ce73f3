"""The class Client: a coordinator's jobs, records and workers, for programs."""

import threading

from . import _core
from ._model import Model, owns
from ._program import Call, ProgramError, call
from ._report import Report
from ._tune import follow, open_bundle, run_tune_with_page

_TUNE = ("wait", "now", "later")  # values of fetch()'s `tune`, in the order of warploom_tune
_MISS = 3  # exit code of the program when the store has no record for what was asked


def _unless_missing(ask):
    """Returns the result of `ask`, or None if the store lacks what `ask` requests."""
    try:
        return ask()
    except ProgramError as error:
        if error.code == _MISS:
            return None
        raise


class Client:
    """A coordinator, called as a client or as an operator. Threads may share one Client, since each method makes calls of its own.

    server: "HOST:PORT" or "unix:PATH". tls_ca, tls_cert, tls_key: PEM files for TLS. signers: a file of public keys, one of which must have
    signed a record (None: not checked). token: a token from `warploomd token`; token_file: a file with one. cache: the folder in which
    fetch() keeps bundles (None: in the user's cache folder). trust_workers: whether to use compiled kernels for which only the workers that
    sent them vouch. counts: whether the coordinator is told about once a minute how often and how long kernels of fetch() run, so that it
    searches those further that take most time. Errors are ProgramError, with the message of the command line.
    """

    def __init__(
        self, server, *, tls_ca=None, tls_cert=None, tls_key=None, signers=None, token=None, token_file=None, cache=None, trust_workers=False,
        counts=True,
    ):
        owns(self)
        self.server = server
        self._cache, self._core, self._lock = str(cache or ""), None, threading.Lock()
        files = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key, "signers": signers, "token_file": token_file}
        self._options = {"server": server, "token": token, **files}
        self._trust = {"trust_workers": True} if trust_workers else {}
        self._counts = counts

    def tune(self, model, *, out=None, threads=0, progress=None, **options):
        """Tunes a model on this coordinator's workers; arguments and result are those of warploom.tune()."""
        options |= self._options | self._trust | {"progress": progress}
        return open_bundle(model, out, threads=threads, make=lambda folder: run_tune_with_page(model, folder, **options))

    def get(self, model, *, out=None, threads=0, **options):
        """Returns the model with the kernels that the coordinator's store has; None if the store lacks a kernel. Starts no search."""

        def make(folder):
            return Report(call("get", model, out=folder, **options, **self._options, **self._trust))

        return _unless_missing(lambda: open_bundle(model, out, threads=threads, make=make))

    def fetch(
        self, model=None, *, key=None, target="cpu", bind=None, weights=(), trials=0, deadline=None, fallback=None, threads=0,
        allow_tf32=False, tune="wait",
    ):
        """Returns the model with the kernels that this process, the cache on disk or the coordinator has, for programs that serve models.

        model: the path of an .onnx or .graph file; or key: the key of one kernel. trials: limit of kernels tried for each group of
        operations that the coordinator has no kernel for; 1: the default kernels, verified; 0: no search. deadline: seconds that the call
        may wait for the coordinator; None: as long as it takes. A request that misses the deadline goes on in the background, for later
        calls. fallback: the folder of a bundle to load instead of an error. allow_tf32: whether products of f32 may round factors to tf32.
        tune: what the call waits for if `trials` allow a search: "wait": the search; "now": predicted kernels, compiled and checked once,
        and nothing is searched; "later": those, and the search follows while nobody waits for the coordinator's workers. The model's
        `chosen` says which it has, and `replaced` when a later call has newer ones. Its `source` says where it came from. The caller sets
        its weights. Errors are warploom.Error, and ValueError for another `tune`.
        """
        if tune not in _TUNE:
            raise ValueError(f"tune is {', '.join(map(repr, _TUNE))}; found {tune!r}")
        request = {
            "graph": str(model or ""),
            "key": key or "",
            "target": target,
            "bind": ",".join(f"{name}={extent}" for name, extent in (bind or {}).items()),
            "weights": ",".join(weights),
            "trials": trials,
            "deadline_ms": -1 if deadline is None else int(1000 * deadline),
            "fallback": str(fallback or ""),
            "allow_tf32": allow_tf32,
            "tune": _TUNE.index(tune),
        }
        core, source = self._fetcher().load(**request)
        return Model(core, threads=threads, source=source)

    def _fetcher(self):
        with self._lock:
            if self._core is None:
                given = {name.removeprefix("tls_"): value for name, value in self._options.items() if value}
                texts = {name: str(value) for name, value in given.items()}
                self._core = _core.Client(cache=self._cache, no_counts=not self._counts, **texts, **self._trust)
        return self._core

    def record(self, key):
        """Returns the record that the coordinator serves for a kernel's key, as a dict; None if there is no record."""
        return _unless_missing(lambda: call("get", key, **self._options))

    def jobs(self, limit=100):
        """Returns the jobs, newest first, as a list of dicts."""
        return call("jobs", limit=limit, **self._options)["jobs"]

    def records(self, limit=100):
        """Returns the stored kernels, newest first, as a list of dicts."""
        return call("records", limit=limit, **self._options)["records"]

    def workers(self):
        """Returns the workers as a list of dicts."""
        return call("workers", **self._options)["workers"]

    def status(self):
        """Returns the coordinator's state as a dict: its version, its store, whether it is drained, and so on."""
        return call("status", **self._options)

    def watch(self, job):
        """Yields a dict, as `--progress json` prints it, for every change of the job with this name, until it ends."""
        with Call("watch", job, progress=True, **self._options) as running:
            yield from running.progress()
            running.result()

    def wait(self, job, *, progress=None):
        """Waits for the job with this name, and returns its Report. KeyboardInterrupt ends the waiting; the job goes on."""
        with Call("watch", job, progress=True, **self._options) as running:
            return follow(running, progress)

    def cancel(self, job):
        """Ends the job with this name; its best kernels so far are kept. Returns a dict with its `name` and `state`."""
        return call("cancel", job, **self._options)

    def __repr__(self):
        return f"warploom.Client({self.server!r})"
