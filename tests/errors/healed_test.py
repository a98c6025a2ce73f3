#!/usr/bin/env python3
"""Faults that need no repair by the user: `tune` compiles objects of a store again that are missing, empty or changed; commands that share
a store take turns; a command ends with the process that started it, and its children end with the command."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

from graphs import LAYER, PRODUCT, SOFTMAX
from harness import Scratch, expect, until


def objects(scratch):
    return sorted(path for path in (scratch.root / "store.db.objects").rglob("*") if path.is_file())


def check_objects(scratch):
    graph, store, out = scratch.path("product.graph"), scratch.path("store.db"), scratch.path("tuned")
    # One product: of a graph with several covers, a busy machine could search another cover in the second job, and try its winners here.
    (scratch.root / "product.graph").write_text(PRODUCT)
    tune = ["warploom", "tune", graph, "--store", store, "--trials", 4, "--out", out]
    scratch.run(*tune)
    for damage in "lost", "empty", "flipped":
        for path in objects(scratch):
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data if damage == "flipped" else b"")
            if damage == "lost":
                path.unlink()
        # `get` reports that the object is lost or damaged. `tune` compiles the kernel again, without a new search.
        said = scratch.run("warploom", "get", graph, "--store", store, expect=3).err
        expect("is lost or damaged" in said and "run `warploom tune" in said, said)
        trials = trials_of(store)
        scratch.run(*tune)
        again = trials_of(store)
        expect(trials and again == trials, f"{damage}: searched again: {trials} trials became {again}")
        scratch.run("warploom", "run", out, "--check")
        scratch.run("warploom", "get", graph, "--store", store, "--out", out)


def trials_of(store):
    """Returns the number of trials of each group."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        return dict(database.execute("SELECT key, count(*) FROM trials JOIN searches ON searches.id = search_id WHERE phase = 0 GROUP BY key"))


def check_turns(scratch):
    """Four commands that use one store at the same time all succeed, and each that waits for another says so."""
    names = []
    for name, text in ("layer", LAYER), ("softmax", SOFTMAX):
        (scratch.root / f"{name}.graph").write_text(text)
        names.append(name)
    children = [
        scratch.start("warploom", "tune", scratch.path(f"{name}.graph"), "--store", scratch.path("turns.db"), "--trials", 4, name=name)
        for name in names * 2
    ]
    for child in children:
        expect(child.wait(300) == 0, "one of four at once has failed")
    said = "".join((scratch.root / f"{name}.log").read_text() for name in names)
    expect("waiting for its end" in said, said)


def check_parent(scratch):
    """With --end-with PID, a command and its children end when the process PID ends, by whichever signal, or if it does not exist."""
    (scratch.root / "layer.graph").write_text(LAYER)
    tune = ["tune", scratch.path("layer.graph"), "--store", scratch.path("parent.db"), "--trials", 100_000]
    for how in signal.SIGKILL, signal.SIGTERM:
        parent = subprocess.Popen(["sleep", "1000"])
        child = scratch.start("warploom", "--end-with", parent.pid, *tune, name=f"{how.name}")
        until(lambda: len(below(child.process.pid)) > 1, 60, "a runner")
        started = below(child.process.pid)
        parent.send_signal(how)
        parent.wait()
        child.wait(20)
        until(lambda: not any(alive(each) for each in started), 10, "the end of all that it had started")
    begun = time.monotonic()
    child = scratch.start("warploom", "--end-with", 2**22 - 1, *tune, name="none")
    child.wait(20)
    print(f"with a parent that has ended it takes {time.monotonic() - begun:.2f} s")
    scratch.run("warploom", "--end-with", -1, *tune, expect=2)


def check_shares(scratch):
    """--share is a part of this machine."""
    for share in (0, 1.5, -1, "nan", "half"):
        done = scratch.run("warploom", "--share", share, "tune", "m.graph", expect=1)
        expect(f"--share: expected a number above 0 and at most 1, such as 0.25, found {share}" in done.err, done.err)
    expect("excludes" in scratch.run("warploom", "--share", 0.5, "--idle", "tune", "m.graph", expect=1).err, "both are taken")
    expect("leave out --share" in scratch.run("warploom", "--share", 0.5, "tune", "m.graph", "--server", "unix:s", expect=2).err, "")


def check_killed(scratch):
    """When a command is killed, all processes that it has started end, including compilers that have no sandbox."""
    (scratch.root / "layer.graph").write_text(LAYER)
    tools = scratch.root / "bin"
    tools.mkdir()
    slow = tools / "g++"
    slow.write_text('#!/bin/sh\ncase "$1" in --version) exec /usr/bin/g++ "$@";; esac\nsleep 1000 & wait\n')
    slow.chmod(0o755)
    environment = scratch.environment | {"PATH": f"{tools}:/usr/bin:/bin"}
    scratch.environment = environment
    child = scratch.start("warploom", "tune", scratch.path("layer.graph"), "--store", scratch.path("killed.db"), "--trials", 4)
    until(lambda: any("sleep" in command(pid) for pid, _ in below(child.process.pid)), 60, "a compiler that sleeps")
    started = below(child.process.pid)
    child.process.kill()
    child.wait(20)
    until(lambda: not any(alive(each) for each in started), 10, "the end of its compilers")


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


def status(pid):
    """Returns (id of the parent, start time) of a process; None if the process does not exist or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def alive(each):
    found = status(each[0])
    return found is not None and found[1] == each[1]


def below(pid):
    """Returns the descendants of a process, as pairs of an id and a start time."""
    now = {int(name): status(name) for name in os.listdir("/proc") if name.isdigit()}
    found = {pid}
    while more := {each for each, known in now.items() if known and known[0] in found} - found:
        found |= more
    return {(each, now[each][1]) for each in found - {pid} if now.get(each)}


def main():
    for part in check_objects, check_turns, check_parent, check_killed, check_shares:
        with Scratch() as scratch:
            part(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
