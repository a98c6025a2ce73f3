#!/usr/bin/env python3
"""A client loads objects that the coordinator has built itself, or that workers of two callers agree on. It builds other objects itself,
unless --trust-workers is given, which the report repeats. The test also removes the files of a running coordinator, which then ends."""

import json
import os
import pathlib
import re

import graphs
from harness import Scratch, expect, until


def serve(scratch, name, *options):
    return scratch.serve(name, *options, store=f"{name}.db", name=name)


def tune(scratch, name, *options, expect=0):
    how = ["--server", f"unix:{name}", "--trials", 2, "--json", f"{name}.json", "--out", f"{name}.out"]
    done = scratch.run("warploom", "tune", "g.graph", *how, *options, expect=expect)
    report = scratch.root / f"{name}.json"
    return done, json.loads(report.read_text()) if report.exists() else None


def built_by_the_coordinator(scratch):
    """The coordinator builds the objects in the usual case of a laptop: one machine, no certificates, no flags."""
    serve(scratch, "laptop")
    scratch.start("warploom-worker", "--server", "unix:laptop", "--name", "w", name="worker")
    done, report = tune(scratch, "laptop")
    expect("confirmed: 0 of 1 kernels" in done.out and "1 built to them by the coordinator itself" in done.out, done.out)
    expect("not confirmed" not in done.out, done.out)
    expect([group["built"] for group in report["groups"]] == [True], report["groups"])
    expect(report["groups"][0]["measured_by"] == f"uid:{os.getuid()}/w", report["groups"])
    expect("trust_workers" not in report, report)
    scratch.run("warploom", "run", "laptop.out", "--check")


def built_by_the_client(scratch):
    serve(scratch, "plain", "--no-build")
    scratch.start("warploom-worker", "--server", "unix:plain", "--name", "w", name="plain-worker")
    done, report = tune(scratch, "plain")
    expect("not confirmed: 1 of 1 kernels; whoever uses them builds" in done.out, done.out)
    expect([group["built"] for group in report["groups"]] == [False], report["groups"])
    scratch.run("warploom", "run", "plain.out", "--check")
    # The client may not load objects that other machines have built. Without a compiler, it cannot build them itself either.
    path = scratch.environment["PATH"]
    (scratch.root / "nothing").mkdir()
    scratch.environment["PATH"] = scratch.path("nothing")
    try:
        refused, _ = tune(scratch, "plain", expect=2)
        for says in ("has not built it itself", "cannot be built here", "--trust-workers"):
            expect(says in refused.err, refused.err)
        trusted, report = tune(scratch, "plain", "--trust-workers")
        expect("used as their workers sent them (--trust-workers)" in trusted.out, trusted.out)
        expect(report["trust_workers"] is True, report)
        bundle = next(pathlib.Path(scratch.path("plain.out")).rglob("report.json"))
        expect(json.loads(bundle.read_text())["trust_workers"] is True, "the bundle says so too")
    finally:
        scratch.environment["PATH"] = path
    both = scratch.run("warploom", "tune", "g.graph", "--out", "x", "--trust-workers", "--build-locally", expect=1)
    expect("--trust-workers" in both.err and "--build-locally" in both.err, both.err)


def files_taken_away(scratch):
    child = serve(scratch, "cleaned")
    until(lambda: os.path.exists(scratch.path("cleaned.db-wal")), 60, "the store is open")
    expect(os.stat(scratch.path("cleaned.db")).st_mode & 0o777 == 0o600, "the store is its owner's alone")
    os.remove(scratch.path("cleaned.db-wal"))
    expect(child.wait(60) != 0, "it ends by itself")
    log = (scratch.root / "cleaned.log").read_text()
    # The message may say "replaced": the next reader of the store makes a new file with the name of the removed one.
    expect(re.search(r"cleaned.db-wal was (removed|replaced) by another program while this one used it", log), log)
    serve(scratch, "cleaned")  # the store can be opened by another coordinator


def main():
    with Scratch() as scratch:
        (scratch.root / "g.graph").write_text(graphs.EXP)
        built_by_the_coordinator(scratch)
        built_by_the_client(scratch)
        files_taken_away(scratch)


if __name__ == "__main__":
    main()
