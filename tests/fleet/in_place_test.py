#!/usr/bin/env python3
"""A kernel that replaced another one is tried in the program that runs it: the store is told that the default schedule of a product has
replaced the searched one. A real worker times the program with both, and the coordinator serves again what the times say."""

import contextlib
import json
import sqlite3
import urllib.request

import graphs
from harness import Scratch, expect, until

TRIALS = 32  # candidates of the product, of which the default schedule is not the fastest


def changed(store, *statements):
    with contextlib.closing(sqlite3.connect(store)) as opened:
        for statement, arguments in statements:
            opened.execute(statement, arguments)
        opened.commit()


def one(store, query, *arguments):
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
        return opened.execute(query, arguments).fetchone()


def made(scratch, server, trials):
    """Makes kernels for the graph, and returns the time and the record of each group by its key."""
    options = ("--cover", "one-per-op", "--kernels-alone", "--trials", trials, "--server", server, "--json", "-")
    groups = scratch.run("warploom", "tune", scratch.path("g.graph"), *options).json()["groups"]
    return {group["key"]: (group["best_ns"], group["record"]) for group in groups}


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.FEED_FORWARD)
        store, server = scratch.path("a.db"), f"unix:{scratch.path('s')}"
        coordinator = scratch.serve("s", "--background-hours", "never", store="a.db")
        scratch.start("warploom-worker", "--server", server, name="worker")
        defaults, searched = made(scratch, server, 1), made(scratch, server, TRIALS)
        key = max(defaults, key=lambda key: defaults[key][0] - searched[key][0])
        default, best = defaults[key][1], searched[key][1]
        expect(best != default, f"the search found nothing better: {defaults} {searched}")
        coordinator.process.terminate()
        coordinator.wait(60)
        expect(one(store, "SELECT count(*) FROM programs WHERE key = ?", bytes.fromhex(key)) == (1,), "the program is known")
        changed(
            store,
            ("UPDATE records SET blessed = 0 WHERE digest = ?", (bytes.fromhex(best),)),
            ("UPDATE records SET blessed = 1 WHERE digest = ?", (bytes.fromhex(default),)),
            (
                "INSERT INTO replaced (key, environment, namespace, before, after, plan, made_ms) SELECT key, environment, namespace, ?, "
                "digest, 'the default', 1000 * unixepoch() FROM records WHERE digest = ?",
                (bytes.fromhex(best), bytes.fromhex(default)),
            ),
        )
        scratch.serve("s", "--http", "127.0.0.1:0", store="a.db", name="coordinator2")
        until(lambda: one(store, "SELECT outcome FROM replaced") != (0,), 120, "the kernel is tried in place")
        outcome, before_ns, after_ns, calls, message = one(store, "SELECT outcome, before_ns, after_ns, calls, message FROM replaced")
        expect(calls > 5 and before_ns > 0, (calls, message))
        expect(outcome == (2 if after_ns > 1.01 * before_ns else 1), f"{outcome}: {message}")
        served = one(store, "SELECT digest FROM records WHERE key = ? AND blessed = 1", bytes.fromhex(key))[0].hex()
        expect(served == (best if outcome == 2 else default), f"{served} is served after outcome {outcome}")
        jobs = scratch.run("warploom", "jobs", "--server", server, "--json", "-").json()["jobs"]
        expect([job["state"] for job in jobs if job["label"].startswith("in place: ")] == ["succeeded"], jobs)
        page = scratch.logged("coordinator2", r"metrics on (\S+)", "the page is served")
        record = json.load(urllib.request.urlopen(f"http://{page}/api/records/{served}", timeout=30))
        expect([row["seen"] for row in record["in_place"]] == [message], record["in_place"])


if __name__ == "__main__":
    main()
