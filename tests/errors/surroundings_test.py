#!/usr/bin/env python3
"""Faults of a machine do not count as faults of candidates. `tune` reports the fault, stores no trials, and succeeds once the fault has
been removed. A job of a coordinator continues at another worker."""

import os
import resource
import shutil
import sqlite3
import sys

from graphs import LAYER
from harness import BIN, Scratch, expect, has_sanitizer, until

COMPILERS = ("g++", "clang++")


def tools(scratch, name, compiler):
    """Returns a PATH whose compilers report their versions, and otherwise run a shell script."""
    folder = scratch.root / name
    folder.mkdir()
    for each in COMPILERS:
        real = shutil.which(each)
        if real:
            (folder / each).write_text(f'#!/bin/sh\ncase "$1" in --version) exec {real} "$@";; esac\n{compiler.replace("REAL", real)}\n')
            (folder / each).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def limited(what, most):
    return {"preexec_fn": lambda: resource.setrlimit(what, (most, most))}


def faults(scratch):
    """Yields faults: name, environment variables, options of the process, and a part of the message."""
    yield "compiler fails", {"PATH": tools(scratch, "failing", "echo 'cc1plus: not found' >&2; exit 1")}, {}, "cc1plus: not found"
    yield "compiler is killed", {"PATH": tools(scratch, "killed", "kill -9 $$")}, {}, "known to be right"
    yield "objects are empty", {"PATH": tools(scratch, "empty", 'REAL "$@"; for f in *.o *.so; do : > $f; done')}, {}, "known to be right"
    yield "files may not be large", {}, limited(resource.RLIMIT_FSIZE, 8192), ""
    yield "no temporary folder", {"TMPDIR": "/no/such/folder"}, {}, "TMPDIR is /no/such/folder, which is not a folder"
    # With a sanitizer, which reserves terabytes of address space, limits on memory cannot be tested.
    if not has_sanitizer(BIN / "warploom"):
        yield "no threads", {}, limited(resource.RLIMIT_AS, 300 << 20), "ulimit -v"
        yield "little memory", {}, {"memory": True}, ""
    disks = (("noexec", "noexec,size=64m", "mounted noexec"), ("full disk", "size=32k", ""), ("read-only", "ro,size=64m", ""))
    for name, options, said in disks:
        folder = scratch.mounted(name.split()[0], options)
        if folder:
            yield name, {"TMPDIR": str(folder)}, {}, said


def trials(store):
    if not os.path.exists(store):
        return 0
    with sqlite3.connect(store) as database:
        return database.execute("SELECT count(*) FROM trials").fetchone()[0]


def check_embedded(scratch):
    graph = scratch.path("layer.graph")
    (scratch.root / "layer.graph").write_text(LAYER)
    for name, environment, options, said in faults(scratch):
        store, sound = scratch.path(f"{name.replace(' ', '-')}.db"), scratch.environment
        scratch.environment = sound | environment
        if options.pop("memory", False):
            options = limited(resource.RLIMIT_AS, 600 << 20)
        done = scratch.run("warploom", "tune", graph, "--store", store, "--trials", 4, expect=None, **options)
        scratch.environment = sound
        print(f"{name}: {done.code}: {done.err.strip()[-700:]}")
        expect(done.code not in (0, 5), f"{name}: exit code {done.code}\n{done.out}{done.err}")
        expect(said in done.err, f"{name}: {done.err}")
        expect(trials(store) == 0, f"{name}: {trials(store)} trials are stored")
        scratch.run("warploom", "tune", graph, "--store", store, "--trials", 1)


def check_fleet(scratch):
    """A worker with a broken compiler returns its batch and ends; another worker completes the job."""
    (scratch.root / "layer.graph").write_text(LAYER)
    server = f"unix:{scratch.path('s')}"
    scratch.start("warploomd", "--listen", server, "--store", scratch.path("fleet.db"), name="coordinator")
    until(lambda: os.path.exists(scratch.path("s")), 60, "the coordinator")
    job = scratch.start("warploom", "tune", scratch.path("layer.graph"), "--server", server, "--trials", 4, name="job")
    sound = scratch.environment
    scratch.environment = sound | {"PATH": tools(scratch, "broken", "echo broken >&2; exit 1")}
    broken = scratch.start("warploom-worker", "--server", server, "--sandbox", "none", name="broken")
    scratch.environment = sound
    expect(broken.wait(120) == 4, "the worker whose compiler is broken")
    said = (scratch.root / "broken.log").read_text()
    expect("known to be right failed" in said, said)
    expect(job.process.poll() is None, "the job has ended with the broken worker")
    scratch.start("warploom-worker", "--server", server, "--sandbox", "none", name="sound")
    expect(job.wait(240) == 0, "the job has failed")


def main():
    for part in check_embedded, check_fleet:
        with Scratch() as scratch:
            part(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
