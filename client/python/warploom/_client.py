"""A coordinator, for programs: jobs, records and workers."""

import threading

from . import _core
from ._model import Model, owns
from ._program import Call, ProgramError, call
from ._report import Report
from ._tune import follow, open_bundle, run_tune_with_page

_MISS = 3  # exit code


def _unless_missing(ask):
    """The answer, or None where the store lacks what was asked for."""
    try:
        return ask()
    except ProgramError as error:
        if error.code == _MISS:
            return None
        raise


class Client:
    """A coordinator, called as a client or an operator. Every method makes calls of its own, so threads may share one.

    server: "HOST:PORT" or "unix:PATH". tls_ca, tls_cert and tls_key are files in PEM, signers a file of the keys that may have signed
    records, token a token from `warploomd token`, cache the folder of what fetch() keeps (none: in the user's cache folder),
    trust_workers whether objects are used for which nobody but the workers that sent them gives a word. Errors are ProgramError, with the words of the command line.
    """

    def __init__(self, server, *, tls_ca=None, tls_cert=None, tls_key=None, signers=None, token=None, token_file=None, cache=None, trust_workers=False):
        owns(self)
        self.server = server
        self._cache, self._core, self._lock = str(cache or ""), None, threading.Lock()
        files = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key, "signers": signers, "token_file": token_file}
        self._options = {"server": server, "token": token, **files}
        self._trust = {"trust_workers": True} if trust_workers else {}

    def tune(self, model, *, out=None, threads=0, progress=None, **options):
        """As warploom.tune(), by this coordinator's workers."""
        options |= self._options | self._trust | {"progress": progress}
        return open_bundle(model, out, threads=threads, make=lambda folder: run_tune_with_page(model, folder, **options))

    def get(self, model, *, out=None, threads=0, **options):
        """The model with the kernels that the coordinator has, or None where it lacks one. Searches nothing."""

        def make(folder):
            return Report(call("get", model, out=folder, **options, **self._options, **self._trust))

        return _unless_missing(lambda: open_bundle(model, out, threads=threads, make=make))

    def fetch(
        self, model=None, *, key=None, target="cpu", bind=None, weights=(), trials=0, deadline=None, fallback=None, threads=0,
        allow_tf32=False,
    ):
        """The model with the kernels that this process, the cache on disk or the coordinator has, for programs that serve.

        model: an .onnx or .graph file; or key: that of one kernel. trials: of a search where the coordinator has nothing; 1: verified
        default kernels; 0: none. deadline: seconds that the call may wait for the coordinator; None: as long as it takes. What is not
        there in time is asked on in the background, for later calls. fallback: the folder of a bundle to load instead of an
        error. allow_tf32: products of f32 may have factors of tf32. The model says in `source` which it was. Weights are to be set. Errors are warploom.Error.
        """
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
        }
        core, source = self._fetcher().load(**request)
        return Model(core, threads=threads, source=source)

    def _fetcher(self):
        with self._lock:
            if self._core is None:
                given = {name.removeprefix("tls_"): value for name, value in self._options.items() if value}
                self._core = _core.Client(cache=self._cache, **{name: str(value) for name, value in given.items()}, **self._trust)
        return self._core

    def record(self, key):
        """The record that is served for a key, as a dict, or None."""
        return _unless_missing(lambda: call("get", key, **self._options))

    def jobs(self, limit=100):
        """Jobs, newest first: a list of dicts."""
        return call("jobs", limit=limit, **self._options)["jobs"]

    def records(self, limit=100):
        """Stored kernels, newest first: a list of dicts."""
        return call("records", limit=limit, **self._options)["records"]

    def workers(self):
        """The workers: a list of dicts."""
        return call("workers", **self._options)["workers"]

    def status(self):
        """What the coordinator is, as a dict: its version, its store, whether it is drained."""
        return call("status", **self._options)

    def watch(self, job):
        """Yields a dict for every change of a job, given by name, until it ends; see `--progress json`."""
        with Call("watch", job, progress=True, **self._options) as running:
            yield from running.progress()
            running.result()

    def wait(self, job, *, progress=None):
        """Waits for a job, given by name, and returns its Report. An interrupt ends the job early, with the best so far."""
        with Call("watch", job, progress=True, **self._options) as running:
            return follow(running, progress)

    def cancel(self, job):
        """Ends a job, given by name; the best so far is kept. Returns its `name` and `state`."""
        return call("cancel", job, **self._options)

    def __repr__(self):
        return f"warploom.Client({self.server!r})"
