#!/usr/bin/env python3
"""A program that uses the C library runs kernels of a coordinator: from the coordinator, then from the program's cache, even after the
coordinator has stopped or ended; by graph and by key; with a deadline and a fallback if no coordinator answers. The test also reads its
messages if it finds no kernels."""

import signal

import graphs
from harness import Scratch, expect, until

SOURCES = {"process": "this process", "cache": "the cache", "coordinator": "the coordinator", "fallback": "the fallback"}


def fetched(scratch, source, *arguments):
    done = scratch.run("fetch", *arguments)
    expect(done.out.startswith(f"from {SOURCES[source]} in "), f"{arguments}: expected {source}\n{done.out}{done.err}")


def refused(scratch, says, *arguments):
    done = scratch.run("fetch", *arguments, expect=2)
    expect(says in done.err, f"{arguments}: expected {says}\n{done.err}")


def damage(folder):
    """Changes one byte of the newest kernel under a folder."""
    kernel = max(folder.rglob("*.so"), key=lambda path: path.stat().st_mtime_ns)
    kernel.write_bytes(kernel.read_bytes()[:-1] + b"?")


def main():
    with Scratch() as scratch:
        cache, server = scratch.root / "cache", f"unix:{scratch.path('s')}"
        scratch.environment["XDG_CACHE_HOME"] = str(cache)
        (scratch.root / "m.graph").write_text(graphs.SOFTMAX)
        (scratch.root / "other.graph").write_text(graphs.EXP)
        coordinator = scratch.serve(scratch.path("s"), store="a.db")
        worker = scratch.start("warploom-worker", "--server", server, name="worker")
        workers = ("warploom", "workers", "--server", server, "--json", "-")
        until(lambda: scratch.run(*workers).json()["workers"], 60, "the worker registers")
        refused(scratch, "not in the store", "m.graph", server)
        fetched(scratch, "coordinator", "m.graph", server, 2)
        fetched(scratch, "cache", "m.graph", server, 2)
        fetched(scratch, "coordinator", "m.graph", server)  # the store has the kernels now, so no search is needed
        damage(cache)
        fetched(scratch, "coordinator", "m.graph", server)
        records = scratch.run("warploom", "records", "--server", server, "--json", "-").json()["records"]
        for record in records:
            fetched(scratch, "coordinator", record["key"], server)
        refused(scratch, "no record of 000", "0" * 64, server)

        worker.process.send_signal(signal.SIGKILL)
        coordinator.process.send_signal(signal.SIGSTOP)
        fetched(scratch, "cache", "m.graph", server)
        bundle = max(cache.rglob("manifest.json"), key=lambda path: path.stat().st_mtime_ns).parent
        refused(scratch, "no kernels in time", "other.graph", server, 1, 50)
        fetched(scratch, "fallback", "other.graph", server, 1, 50, bundle)
        coordinator.kill()
        fetched(scratch, "cache", records[0]["key"], server)
        refused(scratch, "no coordinator answers", "other.graph", server, 1)
        fetched(scratch, "fallback", "other.graph", server, 1, -1, bundle)
        refused(scratch, "expected a folder", "other.graph", server, 1, -1, "none")
        refused(scratch, "nothing.onnx", "nothing.onnx", server)


if __name__ == "__main__":
    main()
