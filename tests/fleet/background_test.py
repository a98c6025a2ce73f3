#!/usr/bin/env python3
"""A coordinator searches further what programs run, while nobody waits for its workers: a program of the C library runs a kernel with a
default schedule, the coordinator is told and searches it, also after it was killed; with no_counts it is told nothing."""

import contextlib
import ctypes
import os
import signal
import sqlite3
import sys
import time

import graphs
from harness import BIN, Scratch, expect, has_sanitizer, skip, until

RUN_S = 3  # seconds for which the program runs its kernel; a search of 8 trials pays for itself after 0.4


class ClientOptions(ctypes.Structure):
    TEXTS = ("ca", "cert", "key", "token_file", "token", "signers")
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("server", ctypes.c_char_p), ("cache", ctypes.c_char_p), ("cache_bytes", ctypes.c_uint64),
        *((name, ctypes.c_char_p) for name in TEXTS),
        ("fresh_seconds", ctypes.c_int64), ("trust_workers", ctypes.c_int64), ("no_counts", ctypes.c_int64),
    ]  # fmt: skip


class Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("graph", ctypes.c_char_p), ("key", ctypes.c_char_p), ("target", ctypes.c_char_p),
        ("bind", ctypes.c_char_p), ("weights", ctypes.c_char_p), ("trials", ctypes.c_int64), ("deadline_ms", ctypes.c_int64),
    ]  # fmt: skip


def program(graph, server, no_counts):
    """Loads the kernels of a graph from a coordinator, and runs them for some seconds."""
    library = ctypes.CDLL(str(BIN.parent / "libwarploom.so"))
    library.warploom_status_message.restype = ctypes.c_char_p

    def call(name, *arguments):
        function = getattr(library, name)
        function.restype = ctypes.c_void_p
        if status := function(*arguments):
            sys.exit(f"{name}: {library.warploom_status_message(ctypes.c_void_p(status)).decode()}")

    client, model, executor, source = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    options = ClientOptions(struct_size=ctypes.sizeof(ClientOptions), server=server.encode(), trust_workers=1, no_counts=int(no_counts))
    request = Request(struct_size=ctypes.sizeof(Request), graph=graph.encode(), target=b"cpu", trials=1, deadline_ms=-1)
    call("warploom_client_open", ctypes.byref(options), ctypes.byref(client))
    call("warploom_client_load", client, ctypes.byref(request), ctypes.byref(model), ctypes.byref(source))
    call("warploom_executor_create", model, ctypes.c_size_t(0), None, ctypes.byref(executor))
    end = time.monotonic() + RUN_S
    while time.monotonic() < end:
        call("warploom_executor_run", executor)
    for name, handle in (("executor", executor), ("model", model), ("client", client)):
        getattr(library, f"warploom_{name}_free").argtypes = [ctypes.c_void_p]
        getattr(library, f"warploom_{name}_free")(handle)


class Fleet:
    def __init__(self, scratch):
        self.scratch, self.server = scratch, f"unix:{scratch.path('s')}"
        self.coordinator = scratch.serve("s", "--background-hours", "never", store="a.db")
        scratch.start("warploom-worker", "--server", self.server, name="worker")
        until(lambda: self.listed("workers"), 60, "the worker registers")

    def listed(self, what):
        return self.scratch.run("warploom", what, "--server", self.server, "--json", "-").json()[what]

    def background(self):
        return [job for job in self.listed("jobs") if job["label"].startswith("background: ")]

    def run_program(self, graph, no_counts):
        command = [sys.executable, __file__, graph, self.server, "1" if no_counts else ""]
        pid = os.posix_spawn(sys.executable, command, self.scratch.environment)
        _, status = os.waitpid(pid, 0)
        expect(status == 0, f"the program ended with {status}")


def main():
    if has_sanitizer(BIN / "warploom"):
        skip("Python cannot load a library with a sanitizer")
    with Scratch() as scratch:
        for name in ("SOFTMAX", "EXP"):
            (scratch.root / f"{name}.graph").write_text(getattr(graphs, name))
        fleet = Fleet(scratch)
        fleet.run_program(scratch.path("EXP.graph"), no_counts=True)
        before = fleet.listed("records")
        expect(len(before) == 1, before)
        with contextlib.closing(sqlite3.connect(f"file:{scratch.path('a.db')}?mode=ro", uri=True)) as store:
            expect(store.execute("SELECT count(*) FROM uses").fetchone() == (0,), "it said nothing of what it ran")
        fleet.run_program(scratch.path("SOFTMAX.graph"), no_counts=False)
        usage = scratch.run("warploom", "top", "--server", fleet.server, "--once", "--json", "-").json()["usage"]
        expect(0.3 * RUN_S < usage["time"]["default"]["s"] < 3 * RUN_S and usage["time"]["tuned"]["s"] == 0, f"the time of default kernels: {usage}")
        expect(usage["days"] == 1 and usage["saved_s"] == 0 and usage["cost_s"] > 0 and len(usage["kernels"]) == 1, usage)
        expect(usage["kernels"][0]["saving_s_per_day"] > 0, usage)
        expect("--background-hours" in usage["kernels"][0]["stopped"] and not fleet.background(), f"it was told to search nothing by itself: {usage}")
        # What was counted is stored, so the next process of the coordinator, which may search, goes on with it.
        fleet.coordinator.process.send_signal(signal.SIGKILL)
        fleet.coordinator.process.wait()
        scratch.serve("s", store="a.db", name="coordinator2")
        done = until(lambda: [job for job in fleet.background() if job["state"] == "succeeded"], 240, "a search in the background ends")
        expect("softmax" in done[-1]["label"] or "reduce" in done[-1]["label"] or "exp" in done[-1]["label"], done)
        groups = scratch.run("warploom", "watch", done[-1]["name"], "--server", fleet.server, "--json", "-").json()["groups"]
        expect([group["key"] for group in groups][0] != before[0]["key"], groups)
        searched = {job["label"] for job in fleet.background()}
        expect(len(searched) == 1, f"nothing is searched that was not counted: {searched}")


if __name__ == "__main__":
    program(*sys.argv[1:3], bool(sys.argv[3])) if len(sys.argv) > 1 else main()
